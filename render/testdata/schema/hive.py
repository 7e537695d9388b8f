"""Has Hive's parser, which comes with PySpark, read the statements; prints what is not as it should be."""

import json
import os
import sys

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

jars = os.path.join(os.path.dirname(pyspark.__file__), "jars", "*")
port, secret = launch_gateway(classpath=jars, die_on_exit=True, enable_auth=True)
java = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret)).jvm
ql = java.org.apache.hadoop.hive.ql
conf = java.org.apache.hadoop.hive.conf.HiveConf()
for key in "_hive.hdfs.session.path", "_hive.local.session.path":
    conf.set(key, "/nonexistent")


def children(node):
    return [node.getChild(i) for i in range(node.getChildCount())]


def find(node, name):
    for c in children(node):
        if c.getText() == name:
            return c
    return None


def names(columns):
    return [c.getChild(0).getText() for c in children(columns)] if columns else []


def check(want):
    root = ql.parse.ParseDriver().parse(want["SQL"].rstrip().removesuffix(";"), ql.Context(conf))
    table = find(root, "TOK_CREATETABLE")
    keys = find(table, "TOK_TABLEPARTCOLS")
    location = find(table, "TOK_TABLELOCATION").getChild(0).getText()
    got = {
        "Table": [c.getText() for c in children(find(table, "TOK_TABNAME"))],
        "Columns": names(find(table, "TOK_TABCOLLIST")),
        "Keys": names(find(keys, "TOK_TABCOLLIST")) if keys else [],
        "Location": ql.parse.BaseSemanticAnalyzer.unescapeSQLString(location),
    }
    scheme, _, rest = want["Location"].partition("://")
    if scheme.lower() in ("s3", "s3a", "s3n"):
        want["Location"] = "s3://" + rest
    want["Table"] = [want["Database"], want["Name"]]
    for part in "Columns", "Keys":
        want[part] = [n for n, _ in want[part] or []]
    return [f"{k}: {got[k]!r}, want {want[k]!r}" for k in got if got[k] != want[k]]


for want in json.load(sys.stdin):
    try:
        problems = check(want)
    except Exception as e:  # of one statement, and the others are looked at too
        problems = str(e).splitlines()[:2]
    if problems:
        print(want["File"], problems)
