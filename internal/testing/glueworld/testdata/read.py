"""Reads a table by the catalog with awswrangler: read.py GLUE S3 DATABASE TABLE DT.
Prints the sorted ids of the partitions of that dt as JSON."""

import json
import sys

import awswrangler as wr

glue, s3, database, table, dt = sys.argv[1:]
wr.config.glue_endpoint_url = glue
wr.config.s3_endpoint_url = s3
frame = wr.s3.read_parquet_table(database=database, table=table, partition_filter=lambda p: p["dt"] == dt)
json.dump(sorted(int(i) for i in frame.id), sys.stdout)
