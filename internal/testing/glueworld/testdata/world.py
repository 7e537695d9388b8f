"""Fills a Glue catalog and two buckets as real writers do, and prints what they
wrote as JSON: world.py GLUE S3 BUCKET OTHER. Each table's count and sum are of the
rows that its writer was given."""

import io
import json
import sys

import boto3

import awswrangler as wr
import pandas as pd
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

GLUE, S3, BUCKET, OTHER = sys.argv[1:5]
HIVE = "org.apache.hadoop.hive."
FORMATS = {
    "parquet": ("ql.io.parquet.MapredParquetInputFormat", "ql.io.parquet.MapredParquetOutputFormat", "ql.io.parquet.serde.ParquetHiveSerDe"),
    "orc": ("ql.io.orc.OrcInputFormat", "ql.io.orc.OrcOutputFormat", "ql.io.orc.OrcSerde"),
    "avro": ("ql.io.avro.AvroContainerInputFormat", "ql.io.avro.AvroContainerOutputFormat", "serde2.avro.AvroSerDe"),
}

glue = boto3.client("glue", endpoint_url=GLUE)
s3 = boto3.client("s3", endpoint_url=S3)
told = {}


def tell(table, n, total):
    told[table] = {"rows": int(n), "sum": int(total)}


def frame():
    """Rows of two keys; one value needs escaping, one has a space."""
    n = 18
    return pd.DataFrame({
        "id": range(n),
        "name": [f"näme {i}" for i in range(n)],
        "dt": [f"2026-01-0{1 + i % 3}" for i in range(n)],
        "region": [("eu", "us west", "a/b:c=d%")[i // 3 % 3] for i in range(n)],
    })


def awswrangler():
    wr.config.glue_endpoint_url = GLUE
    wr.config.s3_endpoint_url = S3
    glue.create_database(DatabaseInput={"Name": "wr", "Description": "made by awswrangler's tables"})
    d, keys = frame(), ["dt", "region"]
    common = {"dataset": True, "database": "wr", "mode": "overwrite"}
    wr.s3.to_parquet(d, f"s3://{BUCKET}/wr/orders/", table="orders", partition_cols=keys, glue_table_settings={"columns_comments": {"id": "the order"}}, **common)
    tell("wr.orders", len(d), d.id.sum())
    wr.s3.to_csv(d, f"s3://{BUCKET}/wr/orders_csv", table="orders_csv", partition_cols=["dt"], index=False, **common)
    tell("wr.orders_csv", len(d), d.id.sum())
    wr.s3.to_orc(d, f"s3://{BUCKET}/wr/orders_orc/", table="orders_orc", partition_cols=["dt"], **common)
    tell("wr.orders_orc", len(d), d.id.sum())
    wr.s3.to_parquet(
        d, f"s3://{BUCKET}/wr/projected/", table="projected", partition_cols=["dt", "region"],
        athena_partition_projection_settings={
            "projection_types": {"dt": "date", "region": "enum"},
            "projection_ranges": {"dt": "2026-01-01,2026-01-02"},
            "projection_formats": {"dt": "yyyy-MM-dd"},
            "projection_values": {"region": "eu,us west"},
        }, **common)
    inside = d[(d.dt < "2026-01-03") & (d.region != "a/b:c=d%")]
    tell("wr.projected", len(inside), inside.id.sum())
    flat = d[["id", "name"]]
    wr.s3.to_parquet(flat, f"s3://{BUCKET}/wr/flat/", table="flat", **common)
    wr.s3.to_parquet(flat, f"s3://{BUCKET}/wr/flat/", table="flat", dataset=True, database="wr", mode="append")
    tell("wr.flat", 2 * len(flat), 2 * flat.id.sum())


def pyiceberg():
    from pyiceberg.catalog.glue import GlueCatalog

    catalog = GlueCatalog("glue", **{"glue.endpoint": GLUE, "s3.endpoint": S3, "s3.region": "us-east-1", "warehouse": f"s3://{BUCKET}/iceberg"})
    catalog.create_namespace("ice")
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "name": ["n"] * 5})
    table = catalog.create_table("ice.events", schema=rows.schema)
    table.append(rows)
    table.append(rows)
    tell("ice.events", 10, 2 * sum(range(5)))


def columns(*specs):
    return [dict(zip(("Name", "Type"), s.split(":"))) for s in specs]


def descriptor(kind, location, cols=("id:bigint", "name:string"), **more):
    into, out, serde = FORMATS[kind]
    return {
        "Columns": columns(*cols), "Location": location, "InputFormat": HIVE + into, "OutputFormat": HIVE + out,
        "Compressed": False, "NumberOfBuckets": -1, "StoredAsSubDirectories": False,
        "SerdeInfo": {"SerializationLibrary": HIVE + serde, "Parameters": {"serialization.format": "1"}}, **more,
    }


def create(database, name, descriptor=None, keys=(), parameters=None, **more):
    table = {"Name": name, "TableType": "EXTERNAL_TABLE", "PartitionKeys": columns(*keys), "Parameters": parameters or {"EXTERNAL": "TRUE"}, **more}
    if descriptor:
        table["StorageDescriptor"] = descriptor
    glue.create_table(DatabaseName=database, TableInput=table)


def rows(first, n):
    return pa.table({"id": pa.array(range(first, first + n), pa.int64()), "name": [f"n{i}" for i in range(first, first + n)]})


def parquet(table):
    b = io.BytesIO()
    pa.parquet.write_table(table, b)
    return b.getvalue()


def orc(table):
    b = io.BytesIO()
    pa.orc.write_table(table, b)
    return b.getvalue()


def avro(table):
    """An object container file as Avro's specification has it, uncompressed."""
    def number(n):
        n, out = (n << 1) ^ (n >> 63), b""
        while n > 0x7F:
            n, out = n >> 7, out + bytes([n & 0x7F | 0x80])
        return out + bytes([n])

    def text(raw):
        return number(len(raw)) + raw

    schema = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
    meta = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": b"null"}
    sync = bytes(range(16))
    block = b"".join(number(r["id"]) + text(r["name"].encode()) for r in table.to_pylist())
    head = b"Obj\x01" + number(len(meta)) + b"".join(text(k) + text(v) for k, v in meta.items()) + b"\0" + sync
    return head + number(table.num_rows) + number(len(block)) + block + sync


def put(bucket, key, body):
    s3.put_object(Bucket=bucket, Key=key, Body=body)


def spark_schema(*fields):
    return json.dumps({"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]})


def by_boto3():
    glue.create_database(DatabaseInput={"Name": "hand", "LocationUri": f"s3://{BUCKET}/hand"})
    spark_specific()
    delta()
    create("hand", "recent", TableType="VIRTUAL_VIEW", ViewOriginalText="/* Presto View: e30= */", ViewExpandedText="/* Presto View */",
           parameters={"presto_view": "true", "comment": "Presto View"}, descriptor={"Columns": columns("id:bigint"), "Location": ""})
    custom_locations()
    several_formats()
    account = boto3.client("sts", endpoint_url=GLUE).get_caller_identity()["Account"]
    glue.create_table(DatabaseName="hand", TableInput={"Name": "orders_link", "TargetTable": {"CatalogId": account, "DatabaseName": "wr", "Name": "orders"}})
    glue.create_database(DatabaseInput={"Name": "wr_link", "TargetDatabase": {"CatalogId": account, "DatabaseName": "wr"}})


def spark_specific():
    """As Spark writes what Hive cannot read: the truth is in the parameters."""
    location = f"s3a://{BUCKET}/hand/spark_csv"
    text = "org.apache.hadoop.mapred."
    create("hand", "spark_csv", keys=["dt:string"], descriptor={
        "Columns": columns("col:array<string>"), "Location": f"s3a://{BUCKET}/hand/spark_csv-__PLACEHOLDER__",
        "InputFormat": text + "SequenceFileInputFormat", "OutputFormat": HIVE + "ql.io.HiveSequenceFileOutputFormat",
        "SerdeInfo": {"SerializationLibrary": HIVE + "serde2.lazy.LazySimpleSerDe", "Parameters": {"path": location, "serialization.format": "1", "header": "true"}},
    }, parameters={
        "EXTERNAL": "TRUE", "spark.sql.create.version": "3.5.9", "spark.sql.sources.provider": "csv", "spark.sql.partitionProvider": "catalog",
        "spark.sql.sources.schema": spark_schema(("id", "long"), ("name", "string"), ("dt", "string")),
        "spark.sql.sources.schema.numPartCols": "1", "spark.sql.sources.schema.partCol.0": "dt",
    })
    put(BUCKET, "hand/spark_csv/dt=2026-01-01/part-0.csv", b"id,name\n1,one\n2,two\n")
    glue.create_partition(DatabaseName="hand", TableName="spark_csv", PartitionInput={"Values": ["2026-01-01"], "StorageDescriptor": {
        "Columns": columns("col:array<string>"), "Location": location + "/dt=2026-01-01", "InputFormat": text + "SequenceFileInputFormat",
        "SerdeInfo": {"SerializationLibrary": HIVE + "serde2.lazy.LazySimpleSerDe", "Parameters": {"path": location}},
    }})
    tell("hand.spark_csv", 2, 3)


def delta():
    put(BUCKET, "hand/delta/_delta_log/00000000000000000000.json", b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n')
    put(BUCKET, "hand/delta/part-0.parquet", parquet(rows(0, 3)))
    create("hand", "delta", descriptor=descriptor("parquet", f"s3://{BUCKET}/hand/delta"),
           parameters={"EXTERNAL": "TRUE", "spark.sql.sources.provider": "DELTA", "table_type": "DELTA", "delta.lastUpdateVersion": "3"})
    tell("hand.delta", 3, 3)


def partition(table, value, kind, location):
    glue.create_partition(DatabaseName="hand", TableName=table, PartitionInput={
        "Values": [value], "StorageDescriptor": descriptor(kind, location), "Parameters": {"made": "by hand"}})


def custom_locations():
    """A partition in another bucket, one with old files at its usual place."""
    create("hand", "spread", descriptor=descriptor("parquet", f"s3://{BUCKET}/hand/spread/"), keys=["dt:date"])
    put(BUCKET, "hand/spread/dt=2026-01-01/a.parquet", parquet(rows(0, 4)))
    put(OTHER, "elsewhere/two/b.parquet", parquet(rows(4, 4)))
    put(BUCKET, "hand/spread/dt=2026-01-02/old.parquet", parquet(rows(1000, 1)))
    partition("spread", "2026-01-01", "parquet", f"s3://{BUCKET}/hand/spread/dt=2026-01-01/")
    partition("spread", "2026-01-02", "parquet", f"s3://{OTHER}/elsewhere/two/")
    partition("spread", "2026-01-03", "parquet", f"s3://{OTHER}/elsewhere/nothing/")
    tell("hand.spread", 8, sum(range(8)))


def several_formats():
    create("hand", "formats", descriptor=descriptor("parquet", f"s3://{BUCKET}/hand/formats/"), keys=["dt:string"])
    for value, kind, name, write in (
        ("2026-01-01", "parquet", "data.parquet", parquet), ("2026-01-02", "avro", "data.avro", avro), ("2026-01-03", "orc", "000000_0", orc),
    ):
        at = f"hand/formats/dt={value}/"
        put(BUCKET, at + name, write(rows(0, 5)))
        partition("formats", value, kind, f"s3://{BUCKET}/{at}")


awswrangler()
pyiceberg()
by_boto3()
json.dump(told, sys.stdout)
