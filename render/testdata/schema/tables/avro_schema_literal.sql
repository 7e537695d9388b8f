-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`avro_schema_literal` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.avro.AvroSerDe'
WITH SERDEPROPERTIES (
  'avro.schema.literal'='{"type":"record","name":"r","fields":[{"name":"id","type":"long","doc":"it\'s\073 -- a key"},{"name":"name","type":"string"}]}'
)
STORED AS AVRO
LOCATION 's3://lake/kinds/avro_schema_literal/';
