"""Reads tables by path, as people do: engines.py ROOT. Prints JSON: what each
engine finds in each table, rows and the sum of id, and the values of a key."""

import json
import sys

import duckdb
import pyarrow.compute as pc
import pyarrow.dataset as ds

root = sys.argv[1]
seen = {}
engine = duckdb.connect()


def duck(table, read, key=None):
    [(rows, total)] = engine.execute(f"select count(*), sum(id)::bigint from {read}").fetchall()
    seen[f"DuckDB {table}"] = {"rows": rows, "sum": total}
    if key:
        found = engine.execute(f"select {key}::varchar, count(*) from {read} group by all order by all").fetchall()
        seen[f"DuckDB {table} by {key}"] = dict(found)


def arrow(table, kind, key=None):
    path = f"{root}/{table.replace('.', '/')}"
    t = ds.dataset(path, format=kind, partitioning="hive").to_table()
    seen[f"pyarrow {table}"] = {"rows": t.num_rows, "sum": pc.sum(t["id"]).as_py()}
    if key:
        found = t.group_by(key).aggregate([([], "count_all")]).sort_by(key).to_pylist()
        seen[f"pyarrow {table} by {key}"] = {r[key]: r["count_all"] for r in found}


def parquet(table, key=None):
    duck(table, f"read_parquet('{root}/{table.replace('.', '/')}/**/*.parquet', hive_partitioning=true)", key)
    arrow(table, "parquet", key)


parquet("wr.orders", "region")
parquet("wr.projected", "region")
parquet("wr.flat")
parquet("hand.spread")
arrow("wr.orders_orc", "orc")
arrow("hand.delta", "parquet")
duck("wr.orders_csv", f"read_csv('{root}/wr/orders_csv/**/*.csv', hive_partitioning=true, header=false, names=['id', 'name', 'region'])")
duck("hand.spark_csv", f"read_csv('{root}/hand/spark_csv/**/*.csv', hive_partitioning=true)")
json.dump(seen, sys.stdout)
