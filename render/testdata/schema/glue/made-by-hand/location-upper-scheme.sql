CREATE EXTERNAL TABLE `hand`.`location_upper_scheme` (
  `id` int
)
STORED AS PARQUET
LOCATION 's3://lake/hand/loc_upper';
