-- Athena reads from S3 alone: copy the files there, and name that place.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`local_folder` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 'data/local_folder';
