-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `sales`.`orders` (
  `id` bigint,
  `price` double COMMENT 'gross, EUR',
  `name` string,
  `ts` timestamp,
  `d` date,
  `flag` boolean,
  `tags` array<string>
)
COMMENT 'orders made by awswrangler'
PARTITIONED BY (
  `dt` string,
  `region` string
)
STORED AS PARQUET
LOCATION 's3://lake/wr/orders/'
TBLPROPERTIES (
  'classification'='parquet',
  'compressionType'='snappy',
  'owner_team'='x',
  'projection.enabled'='false',
  'typeOfData'='file'
);
