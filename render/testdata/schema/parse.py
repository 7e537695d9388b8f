"""Reads statements and what must be in them as JSON, and prints what is not as it should be."""

import json
import logging
import sys

import sqlglot
from sqlglot import exp

logging.disable(logging.CRITICAL)

# What a type becomes that Athena lacks; read by position, or left out of files with names.
EQUAL = {"timestamp_ntz": "timestamp", "timestamp_ltz": "timestamp", "interval day to second": "string"}


def typed(kind):
    return kind.sql(dialect="hive", identify=True).lower()


def want_type(text):
    return typed(exp.DataType.build(EQUAL.get(text, text), dialect="hive"))


def columns(schema):
    return [[c.name, typed(c.kind)] for c in schema.expressions]


def check(want):
    statements = [s for s in sqlglot.parse(want["SQL"], read="athena") if s is not None]
    if len(statements) != 1 or type(statements[0]) is not exp.Create:
        return f"{[type(s).__name__ for s in statements]}"
    made = statements[0]
    this = made.this
    got_columns = []
    if isinstance(this, exp.Schema):
        got_columns, this = columns(this), this.this
    keys = made.find(exp.PartitionedByProperty)
    got = {
        "Database": this.db,
        "Name": this.name,
        "External": made.find(exp.ExternalProperty) is not None,
        "Location": made.find(exp.LocationProperty).this.name,
        "Columns": got_columns,
        "Keys": columns(keys.this) if keys else [],
    }
    scheme, _, rest = want["Location"].partition("://")
    if scheme.lower() in ("s3", "s3a", "s3n"):
        want["Location"] = "s3://" + rest
    for part in "Columns", "Keys":
        want[part] = [[n, want_type(t)] for n, t in want[part] or []]
    return [f"{k}: {got[k]!r}, want {want[k]!r}" for k in got if got[k] != want[k]]


for want in json.load(sys.stdin):
    try:
        problems = check(want)
    except Exception as e:  # of one statement, and the others are looked at too
        problems = repr(e)
    if problems:
        print(want["File"], problems)
