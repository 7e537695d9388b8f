-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`avro` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS AVRO
LOCATION 's3://lake/kinds/avro/';
