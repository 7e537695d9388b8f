"""Writes rows through a mount with DuckDB: duck.py ROOT. db/parquet and db/csv by
PARTITION_BY, db/one a file a partition. Prints the rows as JSON, by table."""

import json
import os
import sys

import duckdb

root = sys.argv[1]
engine = duckdb.connect()
ROWS = """select i::bigint id, 'näme ' || i as name, '2026-03-0' || (1 + i % 3) dt, (['eu', 'us west', 'a/b:c=d%', 'é', '~.x'])[1 + i % 5] region
from range({first}, {first} + 30) t(i)"""


def rows(first):
    return [list(r) for r in engine.execute(ROWS.format(first=first) + " order by id").fetchall()]


told = {"parquet": rows(0), "csv": rows(100), "one": rows(200)}
engine.execute(f"copy ({ROWS.format(first=0)}) to '{root}/db/parquet' (format parquet, partition_by (dt, region), overwrite_or_ignore)")
engine.execute(f"copy ({ROWS.format(first=100)}) to '{root}/db/csv' (format csv, header false, partition_by (dt, region), overwrite_or_ignore)")
for dt, in engine.execute(f"select distinct dt from ({ROWS.format(first=200)})").fetchall():
    os.makedirs(f"{root}/db/one/dt={dt}/region=all")
    engine.execute(f"copy (select id, name from ({ROWS.format(first=200)}) where dt = '{dt}') to '{root}/db/one/dt={dt}/region=all/data_0.parquet' (format parquet)")
told["one"] = [[i, n, dt, "all"] for i, n, dt, _ in told["one"]]
json.dump(told, sys.stdout)
