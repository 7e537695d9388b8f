-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`rcfile` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS RCFILE
LOCATION 's3://lake/kinds/rcfile/';
