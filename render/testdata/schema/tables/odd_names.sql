-- Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.
CREATE EXTERNAL TABLE `kinds`.`odd_names` (
  `_id` string COMMENT 'underscore\073 first',
  `select` int COMMENT 'a word of the language',
  `a b` int,
  `tick``s` int COMMENT 'it\'s -- /* not */ a comment \\ \073',
  `größe` double,
  `1st` string,
  `x;y--` struct<`date`:int,`größe`:string,`a b`:date>
  -- "user.id\x3b --" "string" is left out: a column's name has no . and no : in Hive's language
  -- "ns:k" "bigint" is left out: a column's name has no . and no : in Hive's language
  -- "hyphen" "struct<a-b:int>" is left out: the name of its field "a-b" breaks the text of a type
  -- "quote" "array<struct<`tick``s`:int>>" is left out: the name of its field "tick`s" breaks the text of a type
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
