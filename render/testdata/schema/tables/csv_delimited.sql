-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`csv_delimited` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY ','
    ESCAPED BY '\\'
  LINES TERMINATED BY '\n'
  NULL DEFINED AS ''
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/csv_delimited/'
TBLPROPERTIES (
  'skip.header.line.count'='1'
);
