-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`csv_open` (
  `id` string,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'
WITH SERDEPROPERTIES (
  'escapeChar'='\\',
  'quoteChar'='"',
  'separatorChar'='\073'
)
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/csv_open/';
