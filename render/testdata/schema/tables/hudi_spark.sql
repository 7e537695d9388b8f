-- This is for a Hudi table of the kind copy on write. One of the kind merge on read has
-- the input format org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`hudi_spark` (
  `id` bigint,
  `code` varchar(12)
)
PARTITIONED BY (
  `dt` string
)
ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'
STORED AS INPUTFORMAT 'org.apache.hudi.hadoop.HoodieParquetInputFormat'
  OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat'
LOCATION 's3://lake/kinds/hudi_spark';
