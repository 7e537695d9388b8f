-- Spark's options that have no equal in Athena: "dateFormat", "multiLine".
-- Athena reads one object of JSON a line, which these options need not make.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`spark_json` (
  `id` bigint,
  `code` varchar(12)
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
STORED AS TEXTFILE
LOCATION 's3://lake/kinds/spark_json';
