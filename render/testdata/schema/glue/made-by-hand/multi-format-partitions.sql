-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `test`.`events` (
  `eventtype` string,
  `city` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 's3://lake/hand/test.db/events';
