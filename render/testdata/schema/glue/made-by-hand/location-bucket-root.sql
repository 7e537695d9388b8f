CREATE EXTERNAL TABLE `hand`.`location_bucket_root` (
  `id` int
)
STORED AS PARQUET
LOCATION 's3://lake';
