"""Writes Parquet files with a row each: add.py DIR ID… makes DIR/ID.parquet."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq

for n in sys.argv[2:]:
    pq.write_table(pa.table({"id": pa.array([int(n)], pa.int64()), "name": ["added"]}), f"{sys.argv[1]}/{n}.parquet")
