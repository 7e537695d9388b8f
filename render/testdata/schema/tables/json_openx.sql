-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`json_openx` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES (
  'ignore.malformed.json'='true'
)
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/json_openx/';
