-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `sales`.`orders_orc` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS ORC
LOCATION 's3://lake/wr/orders_orc/'
TBLPROPERTIES (
  'classification'='orc',
  'compressionType'='none',
  'projection.enabled'='false',
  'typeOfData'='file'
);
