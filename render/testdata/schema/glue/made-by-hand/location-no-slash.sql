CREATE EXTERNAL TABLE `hand`.`location_no_slash` (
  `id` int
)
STORED AS PARQUET
LOCATION 's3://lake/hand/orders';
