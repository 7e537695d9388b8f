"""Reads tables of the keys dt and region by the catalog with awswrangler, as JSON by
table, sorted: rows.py GLUE S3 DATABASE TABLE…. It leaves the values of keys as they
are in paths, so they are unescaped here, and held to be the catalog's."""

import json
import sys
from urllib.parse import unquote

import awswrangler as wr

glue, s3, database, *tables = sys.argv[1:]
wr.config.glue_endpoint_url = glue
wr.config.s3_endpoint_url = s3


def rows(frame, dt, region):
    return [list(r) for r in zip(map(int, frame["id"]), frame["name"], dt, region)]


def parquet(table):
    frame = wr.s3.read_parquet_table(database=database, table=table)
    found = rows(frame, frame["dt"].astype(str), [unquote(v) for v in frame["region"].astype(str)])
    registered = sorted(map(tuple, wr.catalog.get_parquet_partitions(database=database, table=table).values()))
    assert sorted({(r[2], r[3]) for r in found}) == registered, registered
    return found


def csv(table):
    found = []
    for path, values in wr.catalog.get_csv_partitions(database=database, table=table).items():
        frame = wr.s3.read_csv(path, header=None, names=["id", "name"])
        found += rows(frame, [values[0]] * len(frame), [values[1]] * len(frame))
    return found


json.dump({t: sorted((csv if t.startswith("csv") else parquet)(t)) for t in tables}, sys.stdout)
