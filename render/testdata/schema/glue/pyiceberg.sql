-- No statement makes this Iceberg table again: it is registered by its metadata, by
-- register_table of Iceberg's catalogs.
--   location "s3://lake/ice/icedb.db/events"
--   metadata "s3://lake/ice/icedb.db/events/metadata/00003-181d6109-f9f0-4f57-bd8d-4790a365644e.metadata.json"
-- This makes a new table of the same columns, without rows, once LOCATION is an empty
-- place. How the table is partitioned is in its metadata alone.
CREATE TABLE `icedb`.`events` (
  `id` bigint,
  `name` string,
  `dt` string
)
LOCATION 's3://AN-EMPTY-PLACE/'
TBLPROPERTIES (
  'format'='parquet',
  'table_type'='ICEBERG'
);
