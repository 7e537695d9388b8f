-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`parquet` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 's3://lake/kinds/parquet/';
