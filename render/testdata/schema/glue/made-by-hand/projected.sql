CREATE EXTERNAL TABLE `hand`.`projected` (
  `event` string,
  `n` int
)
PARTITIONED BY (
  `region` string,
  `day` string,
  `hour` int,
  `tenant` string
)
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES (
  'ignore.malformed.json'='true'
)
STORED AS TEXTFILE
LOCATION 's3://lake/hand/projected/'
TBLPROPERTIES (
  'projection.day.format'='yyyy/MM/dd',
  'projection.day.interval'='1',
  'projection.day.interval.unit'='DAYS',
  'projection.day.range'='2024/01/01,NOW',
  'projection.day.type'='date',
  'projection.enabled'='true',
  'projection.hour.digits'='2',
  'projection.hour.range'='0,23',
  'projection.hour.type'='integer',
  'projection.region.type'='enum',
  'projection.region.values'='eu,us,ap-south',
  'projection.tenant.type'='injected',
  'storage.location.template'='s3://lake/hand/projected/${region}/${day}/${hour}/${tenant}'
);
