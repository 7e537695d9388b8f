-- Directories of "dt" are days since 1970, which Athena does not read as dates.
-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`format_table` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` date,
  `hh` int
)
STORED AS ORC
LOCATION 's3://lake/kinds/format_table/'
TBLPROPERTIES (
  'file.format'='orc',
  'type'='format-table'
);
