CREATE EXTERNAL TABLE `sales`.`proj` (
  `v` bigint
)
PARTITIONED BY (
  `y` bigint,
  `m` bigint
)
STORED AS PARQUET
LOCATION 's3://lake/wr/proj/'
TBLPROPERTIES (
  'classification'='parquet',
  'compressionType'='snappy',
  'projection.enabled'='true',
  'projection.m.range'='1,12',
  'projection.m.type'='integer',
  'projection.y.range'='2020,2030',
  'projection.y.type'='integer',
  'typeOfData'='file'
);
