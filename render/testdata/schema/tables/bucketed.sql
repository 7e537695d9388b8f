-- Athena's tables have no skew: values of "name" have directories of their own.
CREATE EXTERNAL TABLE `kinds`.`bucketed` (
  `id` bigint,
  `name` string
)
CLUSTERED BY (`id`) INTO 8 BUCKETS
STORED AS ORC
LOCATION 's3://lake/kinds/bucketed/';
