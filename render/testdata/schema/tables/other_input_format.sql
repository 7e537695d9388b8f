-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`other_input_format` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY ','
STORED AS INPUTFORMAT 'com.example.BlockInputFormat'
  OUTPUTFORMAT 'com.example.BlockOutputFormat'
LOCATION 's3://lake/kinds/other_input_format/';
