-- Directories are values without KEY=: add each partition by ALTER TABLE … ADD PARTITION … LOCATION.
CREATE EXTERNAL TABLE `kinds`.`format_table_values` (
  `id` bigint,
  `name` string
)
PARTITIONED BY (
  `dt` string
)
STORED AS PARQUET
LOCATION 's3://lake/kinds/format_table_values/'
TBLPROPERTIES (
  'file.format'='parquet',
  'format-table.partition-path-only-value'='true',
  'type'='format-table'
);
