"""A Spark session that does jobs: session.py DIR.

Each line of standard input is a job, an object of JSON; the answer is a line of
standard output, {"rows": …} or {"error": …}. DIR is for Spark's own files."""

import json
import os
import sys
import threading
import traceback

from pyspark.sql import SparkSession

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # the JVM prints there too

SCHEMA = "id bigint, name string, k string"


def session(directory):
    # Jobs have two tasks. Some never end: there is room for others beside them.
    b = SparkSession.builder.master("local[8]").config("spark.default.parallelism", "2").config("spark.ui.enabled", "false")
    b = b.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    b = b.config("spark.executor.heartbeatInterval", "60s").config("spark.network.timeout", "600s")  # a busy machine
    b = b.config("spark.ui.showConsoleProgress", "false").config("spark.local.dir", directory)
    b = b.config("spark.sql.warehouse.dir", f"{directory}/warehouse")
    # 12:30 is a text here, and no time of the day.
    b = b.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    return b.getOrCreate()


spark = session(sys.argv[1])


def write(job):
    save(job, spark.createDataFrame([tuple(r) for r in job["rows"]], SCHEMA))


def save(job, frame):
    w = frame.write.format(job["format"]).mode(job["mode"])
    w = w.option("mapreduce.fileoutputcommitter.algorithm.version", job["algorithm"])
    if job.get("dynamic"):
        w = w.option("partitionOverwriteMode", "dynamic")
    if not job.get("flat"):
        w = w.partitionBy("k")
    w.save("file://" + job["path"])


def large(job):
    """Writes so many rows, of 128 bytes and more, in one file."""
    frame = spark.range(0, job["count"], 1, 1).selectExpr("id", "sha2(cast(id as string), 512) as name", "'a' as k")
    save(job, frame)


def read(job):
    frame = spark.read.format(job["format"]).schema(SCHEMA).load("file://" + job["path"])
    return [[r.id, r.name, r.k] for r in frame.collect()]


def together(job):
    """Runs jobs at once."""
    failed = []

    def run(one):
        answer = do(one)
        if "error" in answer:
            failed.append(answer["error"])

    threads = [threading.Thread(target=run, args=(one,)) for one in job["jobs"]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise RuntimeError("\n".join(failed))


def ending(job, how):
    """The rows of a job, where the last one does how. They are not sorted first: those before it are written."""
    spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", "100")
    frame = spark.createDataFrame([tuple(r) for r in job["rows"]], SCHEMA)
    return frame.selectExpr("id", f"case when id = {job['rows'][-1][0]} then {how} else name end as name", "k")


def fail(job):
    """Writes in one task, which fails at the last row, and the job with it. Of several
    tasks those that are killed may make their directories again when all was removed."""
    try:
        save(job, ending(job, "raise_error('enough')").coalesce(1))
    except Exception as e:
        if "enough" not in str(e):
            raise
    else:
        raise RuntimeError("the job did not fail")


def hang(job):
    """Writes in two tasks, the second of which never ends. Does not wait for them."""
    frame = ending(job, "reflect('java.lang.Thread', 'sleep', 3600000L)")
    threading.Thread(target=save, args=(job, frame), daemon=True).start()


def pid(_):
    return spark._jvm.java.lang.ProcessHandle.current().pid()


JOBS = {f.__name__: f for f in [write, large, read, together, fail, hang, pid]}


def do(job):
    try:
        return {"rows": JOBS[job["do"]](job)}
    except Exception:
        return {"error": traceback.format_exc()}


for line in sys.stdin:
    json.dump(do(json.loads(line)), answers)
    answers.write("\n")
    answers.flush()
spark.stop()
