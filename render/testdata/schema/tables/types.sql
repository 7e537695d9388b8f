-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`types` (
  `b` boolean,
  `t` tinyint,
  `s` smallint,
  `i` int,
  `l` bigint,
  `f` float,
  `d` double,
  `dec` decimal(38,10) COMMENT 'exact',
  `str` string,
  `vc` varchar(20),
  `ch` char(3),
  `bin` binary,
  `day` date,
  `ts` timestamp,
  `arr` array<struct<`select`:int,`b`:array<string>>>,
  `m` map<string,decimal(10,2)>,
  `st` struct<`id`:bigint,`name`:string,`in_`:struct<`x`:double>>
)
COMMENT 'all types\nof a column\073 on two lines, it\'s 100%'
PARTITIONED BY (
  `year` int,
  `d2` date COMMENT 'the day',
  `dc` decimal(4,2)
)
STORED AS PARQUET
LOCATION 's3://lake/kinds/types/'
TBLPROPERTIES (
  'has_encrypted_data'='true',
  'parquet.compression'='SNAPPY'
);
