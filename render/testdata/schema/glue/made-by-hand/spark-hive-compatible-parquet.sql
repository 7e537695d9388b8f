-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `hand`.`spark_hive_compat` (
  `id` int,
  `name` string COMMENT 'full name, on two lines',
  `price` decimal(10,2)
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 's3://lake/hand/spark_hive_compat';
