-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`textfile_octal_delimiter` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY '\002'
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/textfile_octal_delimiter/';
