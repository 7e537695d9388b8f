-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`spark_avro` (
  `id` bigint,
  `code` varchar(12)
)
PARTITIONED BY (
  `dt` string
)
STORED AS AVRO
LOCATION 's3://lake/kinds/spark_avro';
