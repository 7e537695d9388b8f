CREATE EXTERNAL TABLE `kinds`.`spark_text` (
  `value` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY '\001'
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/spark_text';
