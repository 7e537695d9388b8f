-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`csv_more_properties` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe'
WITH SERDEPROPERTIES (
  'field.delim'='|',
  'serialization.encoding'='ISO-8859-1',
  'serialization.format'='|',
  'timestamp.formats'='yyyy-MM-dd\'T\'HH:mm:ss'
)
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/csv_more_properties/';
