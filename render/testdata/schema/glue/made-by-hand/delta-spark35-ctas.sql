-- Athena reads the columns and partitions of a Delta table from its log.
CREATE EXTERNAL TABLE `hand`.`delta_spark35`
LOCATION 's3://lake/hand/delta_spark35'
TBLPROPERTIES (
  'table_type'='DELTA'
);
