CREATE EXTERNAL TABLE `hand`.`location_s3n` (
  `id` int
)
STORED AS PARQUET
LOCATION 's3://lake/hand/loc_s3n/';
