-- Athena reads the columns and partitions of a Delta table from its log.
-- The catalog's entry has these:
--   "id" bigint
--   "x\x3by" string
CREATE EXTERNAL TABLE `kinds`.`delta_columns`
LOCATION 's3://lake/kinds/delta_columns/'
TBLPROPERTIES (
  'table_type'='DELTA'
);
