-- Athena does not read tables of Hive's transactions.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`transactional` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS ORC
LOCATION 's3://lake/kinds/transactional/'
TBLPROPERTIES (
  'transactional'='true'
);
