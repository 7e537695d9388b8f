-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`spark_orc` (
  `id` bigint,
  `seen` timestamp
)
PARTITIONED BY (
  `dt` string
)
STORED AS ORC
LOCATION 's3://lake/kinds/spark_orc';
