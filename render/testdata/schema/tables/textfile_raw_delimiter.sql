-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`textfile_raw_delimiter` (
  `id` bigint,
  `tags` array<string>,
  `m` map<string,int>
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY '\001'
  COLLECTION ITEMS TERMINATED BY '\002'
  MAP KEYS TERMINATED BY '\003'
  LINES TERMINATED BY '\n'
  NULL DEFINED AS '\\N'
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/textfile_raw_delimiter/';
