CREATE EXTERNAL TABLE `sales`.`flat` (
  `a` bigint
)
STORED AS PARQUET
LOCATION 's3://lake/wr/flat/'
TBLPROPERTIES (
  'classification'='parquet',
  'compressionType'='snappy',
  'projection.enabled'='false',
  'typeOfData'='file'
);
