-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `hand`.`spark_partcol_first` (
  `id` int
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 's3://lake/hand/spark_partcol_first';
