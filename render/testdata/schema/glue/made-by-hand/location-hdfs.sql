-- Athena reads from S3 alone: copy the files there, and name that place.
CREATE EXTERNAL TABLE `hand`.`location_hdfs` (
  `id` int
)
STORED AS PARQUET
LOCATION 'hdfs://namenode/warehouse/t';
