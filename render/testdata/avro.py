"""Writes Avro files into the directory given: types.CODEC.avro, evolved.avro, many.avro."""
import datetime as dt, decimal, sys, uuid
from fastavro import writer, parse_schema

out = sys.argv[1]
D = decimal.Decimal
field = lambda name, typ: {"name": name, "type": typ}
logical = lambda typ, name, **more: {"type": typ, "logicalType": name, **more}
point = {"type": "record", "name": "Point", "fields": [field("x", "int"), field("y", ["null", "double"])]}
fields = [
    field("nothing", "null"), field("flag", "boolean"), field("i", "int"), field("l", "long"),
    field("f", "float"), field("d", "double"), field("b", "bytes"), field("s", "string"),
    field("e", {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}),
    field("fx", {"type": "fixed", "name": "Four", "size": 4}),
    field("list", {"type": "array", "items": ["null", "int"]}), field("map", {"type": "map", "values": "long"}),
    field("point", ["null", point]), field("points", {"type": "array", "items": "a.b.Point"}),
    field("either", ["null", "int", "string", "Point"]), field("number", ["int", "long", "null"]),
    field("dec", logical("bytes", "decimal", precision=38, scale=4)),
    field("fdec", {"type": "fixed", "name": "Dec", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 2}),
    field("id", logical("string", "uuid")), field("day", logical("int", "date")),
    field("tms", logical("int", "time-millis")), field("tus", logical("long", "time-micros")),
    field("ms", logical("long", "timestamp-millis")), field("us", ["null", logical("long", "timestamp-micros")]),
    field("lms", logical("long", "local-timestamp-millis")), field("lus", logical("long", "local-timestamp-micros")),
    field("ns", logical("long", "timestamp-nanos")), field("lns", logical("long", "local-timestamp-nanos")),
    field("dur", {"type": "fixed", "name": "Dur", "size": 12, "logicalType": "duration"}),
    field("odd", logical("string", "date")),
]
schema = parse_schema({"type": "record", "name": "Row", "namespace": "a.b", "fields": fields})
utc = dt.timezone.utc
rows = [
    dict(nothing=None, flag=True, i=-2**31, l=2**63 - 1, f=0.1, d=1e300, b=b"\x00\xff", s='é"\n', e="GREEN", fx=b"abcd",
         list=[1, None, 3], map={"k": 1, 'q"': -2}, point={"x": 1, "y": 0.5}, points=[{"x": 2, "y": None}],
         either="text", number=2**40, dec=D("-1234567890123456789012345678901234.5678"), fdec=D("-0.05"),
         id=uuid.UUID(int=1), day=dt.date(1969, 12, 31), tms=dt.time(1, 2, 3, 4000), tus=dt.time(23, 59, 59, 999999),
         ms=dt.datetime(2026, 1, 31, 12, 34, 56, 789000, utc), us=dt.datetime(1, 1, 1, tzinfo=utc),
         lms=dt.datetime(2026, 1, 31), lus=dt.datetime(9999, 12, 31, 23, 59, 59, 999999), ns=1, lns=-1,
         dur=b"\x0e\0\0\0\x03\0\0\0\x94\x11\0\0", odd="x"),
    dict(nothing=None, flag=False, i=0, l=0, f=float("nan"), d=float("-inf"), b=b"", s="", e="RED", fx=b"\0\0\0\0",
         list=[], map={}, point=None, points=[], either={"x": 5, "y": None}, number=None, dec=D("0"), fdec=D("12.30"),
         id=uuid.UUID(int=2**128 - 1), day=dt.date(2026, 1, 31), tms=dt.time(0), tus=dt.time(0),
         ms=dt.datetime(1970, 1, 1, tzinfo=utc), us=None, lms=dt.datetime(1970, 1, 1), lus=dt.datetime(1970, 1, 1), ns=0, lns=0,
         dur=b"\0" * 12, odd=""),
]
for codec in ["null", "deflate", "snappy", "zstandard", "bzip2"]:
    try:
        with open(f"{out}/types.{codec}.avro", "wb") as f:
            writer(f, schema, rows, codec=codec)
    except ValueError:  # fastavro lacks the codec's module
        import os
        os.remove(f"{out}/types.{codec}.avro")

# What a table's column order, and its additions and removals, are read from.
with open(f"{out}/evolved.avro", "wb") as f:
    writer(f, {"type": "record", "name": "R", "fields": [
        field("gone", {"type": "array", "items": {"type": "map", "values": ["null", "string", "bytes"]}}),
        field("Name", "string"), field("id", "int"),
        field("at", ["null", {"type": "record", "name": "At", "fields": [field("a", "int"), field("old", "string"), field("b", "bytes")]}])]},
        [dict(gone=[{"a": b"x", "b": None}], Name="one", id=1, at=dict(a=1, old="o", b=b"text")),
         dict(gone=[], Name="two", id=2, at=None)])

with open(f"{out}/many.avro", "wb") as f:
    writer(f, {"type": "record", "name": "R", "fields": [field("n", "long"), field("s", ["null", "string"])]},
           ({"n": i, "s": None if i % 7 == 0 else "row %d" % i} for i in range(20000)), codec="deflate")
