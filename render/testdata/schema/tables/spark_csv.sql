-- Fields in quotes keep them by this row format. Where there are such, take
-- ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde', which reads text alone.
-- Spark's options that have no equal in Athena: "dateFormat".
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`spark_csv` (
  `id` bigint,
  `at` timestamp COMMENT 'local', -- timestamp_ntz, which Athena's timestamp is: of no zone
  `seen` timestamp,
  `code` varchar(12),
  `took` string -- "interval day to second", here its text: Athena's tables have no interval
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT DELIMITED
  FIELDS TERMINATED BY '\t'
    ESCAPED BY '\\'
  LINES TERMINATED BY '\n'
  NULL DEFINED AS 'NA'
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/spark_csv'
TBLPROPERTIES (
  'skip.header.line.count'='1'
);
