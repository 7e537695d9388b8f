-- Athena reads the columns and partitions of a Delta table from its log.
CREATE EXTERNAL TABLE `hand`.`delta_trino`
LOCATION 's3://lake/hand/delta_trino'
TBLPROPERTIES (
  'table_type'='DELTA'
);
