-- Bucketed by Spark, whose hash is not Hive's: no bucketing for Athena.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`spark_parquet` (
  `id` bigint,
  `at` timestamp COMMENT 'local', -- timestamp_ntz, which Athena's timestamp is: of no zone
  `seen` timestamp,
  `code` varchar(12)
  -- "took" "interval day to second" is left out: Athena's tables have no interval
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 's3://lake/kinds/spark_parquet';
