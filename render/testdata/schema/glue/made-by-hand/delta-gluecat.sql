-- Athena reads the columns and partitions of a Delta table from its log.
-- The catalog's entry has these:
--   "id" int
--   "dt" string
CREATE EXTERNAL TABLE `hand`.`delta_gluecat`
LOCATION 's3://lake/hand/delta_gluecat'
TBLPROPERTIES (
  'table_type'='DELTA'
);
