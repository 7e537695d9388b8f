-- Athena reads from S3 alone: copy the files there, and name that place.
CREATE EXTERNAL TABLE `hand`.`location_file` (
  `id` int
)
STORED AS PARQUET
LOCATION 'file:///etc';
