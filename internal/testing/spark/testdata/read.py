"""pyarrow reads tables where they are stored, and knows of no mount: read.py.

Each line of standard input is a job, an object of JSON: a path in a folder, or with
an endpoint BUCKET/KEY. The answer is a line of standard output: the rows, or with
"count" one row of their number."""

import json
import sys
import traceback

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.fs as fs

COLUMNS = [("id", pa.int64()), ("name", pa.string())]
KEY = [("k", pa.string())]


def read(job):
    store = fs.LocalFileSystem()
    if job.get("endpoint"):
        store = fs.S3FileSystem(
            endpoint_override=job["endpoint"].removeprefix("http://"), scheme="http", region="us-east-1",
            access_key=job["access"], secret_key=job["secret"],
        )
    form = job["format"]
    if form == "csv":
        columns = COLUMNS + (KEY if job.get("flat") else [])
        form = ds.CsvFileFormat(read_options=csv.ReadOptions(column_names=[name for name, _ in columns]))
    whole = pa.schema(COLUMNS + KEY)
    key = None if job.get("flat") else ds.partitioning(pa.schema(KEY), flavor="hive")
    table = ds.dataset(job["path"], filesystem=store, format=form, partitioning=key, schema=whole).to_table()
    if job.get("count"):
        return [[table.num_rows, table.column("name")[-1].as_py(), None]]
    rows = zip(*(table.column(name).to_pylist() for name, _ in COLUMNS + KEY))
    return [list(r) for r in rows]


for line in sys.stdin:
    try:
        answer = {"rows": read(json.loads(line))}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
