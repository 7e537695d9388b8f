-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`sequencefile` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY '\001'
STORED AS SEQUENCEFILE
LOCATION 's3://lake/kinds/sequencefile/';
