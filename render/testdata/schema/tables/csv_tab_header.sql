-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`csv_tab_header` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY '\t'
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/csv_tab_header/'
TBLPROPERTIES (
  'classification'='csv',
  'delimiter'='\t',
  'skip.header.line.count'='1'
);
