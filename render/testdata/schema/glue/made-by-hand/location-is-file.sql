CREATE EXTERNAL TABLE `hand`.`location_is_file` (
  `id` int
)
STORED AS PARQUET
LOCATION 's3://lake/hand/loc_file/data.parquet';
