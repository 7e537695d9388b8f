-- Fields in quotes keep them by this row format. Where there are such, take
-- ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde', which reads text alone.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `hand`.`spark_specific_csv` (
  `id` int,
  `name` string COMMENT 'full name, on two lines',
  `price` decimal(10,2)
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
LOCATION 's3://lake/hand/spark_specific_csv'
TBLPROPERTIES (
  'skip.header.line.count'='1'
);
