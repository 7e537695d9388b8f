"""Spark's part of the lake.

spark.py write GLUE S3 BUCKET CACHE DIR   Spark makes tables in buckets by s3a, and
    their entries in a Hive metastore in DIR; boto3 puts those entries into Glue.
spark.py read ROOT CACHE                  Spark reads the tables by path.

Prints JSON: the rows of each table. Jars come by Ivy, into CACHE."""

import json
import os
import sys

from pyspark.sql import Row, SparkSession

FORMATS = ["parquet", "orc", "csv", "json"]
ROWS = [
    (i, f"näme {i}", f"2026-01-0{1 + i % 2}", ("eu", "us west", "a/b:c=d%", None)[i // 2 % 4]) for i in range(16)
]
SCHEMA = "id bigint, name string, dt string, region string"


def session(cache, **conf):
    b = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    b = b.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    b = b.config("spark.executor.heartbeatInterval", "60s").config("spark.network.timeout", "600s")  # a busy machine
    b = b.config("spark.sql.shuffle.partitions", "2").config("spark.jars.ivy", f"{cache}/ivy")
    for name, value in conf.items():
        b = b.config(name, value)
    return b


def rows(frame):
    return sorted([r.id, r.name, str(r.dt), r.region] for r in frame.select("id", "name", "dt", "region").collect())


def write(glue, s3, bucket, cache, directory):
    import boto3

    b = session(cache, **{
        "spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.3.4",  # the Hadoop of PySpark 3.5
        "spark.hadoop.fs.s3a.endpoint": s3,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        # Markers of directories cannot go before what is in them where objects are
        # files; s3a tries again and again.
        "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
        "spark.hadoop.fs.s3a.multiobjectdelete.enable": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={directory}",
    })
    spark = b.enableHiveSupport().getOrCreate()
    frame = spark.createDataFrame([Row(*r) for r in ROWS], SCHEMA)
    client = boto3.client("glue", endpoint_url=glue)
    client.create_database(DatabaseInput={"Name": "spark"})
    spark.sql("create database spark")
    told = {}
    for kind in FORMATS:
        writer = frame.coalesce(1).write.format(kind).partitionBy("dt", "region").option("path", f"s3a://{bucket}/spark/{kind}")
        if kind == "csv":
            writer = writer.option("header", "true")
        writer.saveAsTable(f"spark.{kind}")
        told[kind] = rows(spark.table(f"spark.{kind}"))
        copy(spark, client, kind)
    spark.stop()
    return told


def copy(spark, client, name):
    """Puts a table of the Hive metastore into Glue, as it lies there."""
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    raw = catalog.unwrapped().client().getRawHiveTableOption("spark", name).get().rawTable().getTTable()
    client.create_table(DatabaseName="spark", TableInput={
        "Name": name, "TableType": raw.getTableType(), "Parameters": dict(raw.getParameters()),
        "PartitionKeys": columns(raw.getPartitionKeys()), "StorageDescriptor": descriptor(raw.getSd()), "Retention": 0,
    })
    partitions = catalog.listPartitions("spark", name, spark._jvm.scala.Option.empty())
    inputs = []
    for i in range(partitions.size()):
        p = partitions.apply(i)
        sd = descriptor(raw.getSd())
        # A URI here, but Spark gives Hive the path's own text: no %20 for a space.
        sd["Location"] = spark._jvm.org.apache.hadoop.fs.Path(p.storage().locationUri().get()).toString()
        spec = p.spec()
        values = [spec.get(c["Name"]).get() for c in columns(raw.getPartitionKeys())]
        inputs.append({"Values": values, "StorageDescriptor": sd, "Parameters": {}})
    errors = client.batch_create_partition(DatabaseName="spark", TableName=name, PartitionInputList=inputs).get("Errors")
    if errors:
        raise RuntimeError(errors)


def columns(list):
    return [{"Name": c.getName(), "Type": c.getType()} for c in list]


def descriptor(sd):
    serde = sd.getSerdeInfo()
    return {
        "Columns": columns(sd.getCols()), "Location": sd.getLocation(),
        "InputFormat": sd.getInputFormat(), "OutputFormat": sd.getOutputFormat(),
        "Compressed": False, "NumberOfBuckets": -1, "StoredAsSubDirectories": False,
        "SerdeInfo": {"SerializationLibrary": serde.getSerializationLib(), "Parameters": dict(serde.getParameters())},
    }


def read(root, cache):
    spark = session(cache).getOrCreate()
    seen = {}
    for kind in FORMATS:
        reader = spark.read.format(kind)
        if kind in ("csv", "json"):
            reader = reader.schema(SCHEMA).option("header", "true")
        seen[kind] = rows(reader.load(f"file://{root}/spark/{kind}"))
    spark.stop()
    return seen


json.dump({"write": write, "read": read}[sys.argv[1]](*sys.argv[2:]), sys.stdout)
