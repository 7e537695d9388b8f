CREATE EXTERNAL TABLE `hand`.`location_double_slash` (
  `id` int
)
STORED AS PARQUET
LOCATION 's3://lake/hand//loc_double/';
