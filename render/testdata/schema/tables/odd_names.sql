-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`odd_names` (
  `_id` string COMMENT 'underscore\073 first',
  `select` int COMMENT 'a word of the language',
  `a b` int,
  `tick``s` int COMMENT 'it\'s -- /* not */ a comment \\ \073',
  `größe` double,
  `1st` string,
  `x;y--` struct<`tick``s`:int>
)
PARTITIONED BY (
  `date` string COMMENT 'a word',
  `_key` string
)
STORED AS PARQUET
LOCATION 's3://lake/kinds/it\'s here\073 -- /'
TBLPROPERTIES (
  'it\'s'='a\\b\n\'c\'\073 -- d'
);
