CREATE EXTERNAL TABLE `hand`.`projected_hive` (
  `n` int
)
PARTITIONED BY (
  `dt` date
)
STORED AS PARQUET
LOCATION 's3://lake/hand/projected_hive/'
TBLPROPERTIES (
  'projection.dt.format'='yyyy-MM-dd',
  'projection.dt.interval'='1',
  'projection.dt.interval.unit'='DAYS',
  'projection.dt.range'='NOW-3YEARS,NOW',
  'projection.dt.type'='date',
  'projection.enabled'='true'
);
