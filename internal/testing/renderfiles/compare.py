"""Holds rows as text to what readers of the files give, value by value: compare.py DIR.
For each file F that is named in expect.json there, and of which F.jsonl is there, that (and
F.csv of a flat one) are read back by the type that the reader gives for the column, exactly: floats by their bits,
decimals with their digits, instants as counts of nanoseconds. Prints what differs, a JSON
object a line, and at the end how much was compared. Nothing here knows how the text is
made: what is written may be any ISO-8601 form of an instant, any form of a number."""
import base64, io, json, os, re, struct, sys, uuid
from decimal import Decimal

import duckdb, fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from avroheader import raw, schema_of, with_meta

os.chdir(sys.argv[1])
UNITS = {"s": 10 ** 9, "ms": 10 ** 6, "us": 10 ** 3, "ns": 1, "millis": 10 ** 6, "micros": 10 ** 3, "nanos": 1}


class Number(str):
    """Number is a number of JSON as it is written."""


class Pairs(list):
    """Pairs is an object of JSON: its names in their order, also where one is twice."""


def load(line):
    return json.loads(line, parse_int=Number, parse_float=Number, parse_constant=lambda s: 1 / 0, object_pairs_hook=Pairs)


class Bad(Exception):
    pass


def need(ok, why):
    if not ok:
        raise Bad(why)


# Types as this program has them: a name and what it depends on. ("list", element),
# ("map", key, value), ("struct", [(name, type)]), ("ts", unit, utc; None: unknown),
# ("decimal", scale), …

def days_of(year, month, day):
    """days_of is the count of days since 1970-01-01, in any year of the proleptic calendar."""
    need(1 <= month <= 12 and 1 <= day <= 31, "a day")
    y = year - (month <= 2)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


def parse_day(text):
    m = re.fullmatch(r"([+-]?)(\d{4,})-(\d\d)-(\d\d)", text)
    need(m, "not a date")
    need(len(m[2]) == 4 or m[1], "a year of more than four digits without a sign")
    return days_of(int(m[1] + m[2]), int(m[3]), int(m[4]))


def parse_time(text):
    m = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", text)
    need(m and int(m[1]) < 24 and int(m[2]) < 60 and int(m[3]) < 60, "not a time")
    return (int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3])) * 10 ** 9 + int((m[4] or "").ljust(9, "0"))


def parse_ts(text, utc):
    need(text.endswith("Z") == utc, "Z where it is local, or none where it is not")
    day, t, clock = text.removesuffix("Z").partition("T")
    need(t == "T", "not an instant")
    return parse_day(day) * 86400 * 10 ** 9 + parse_time(clock)


def bits(x, form):
    return "nan" if x != x else struct.pack(form, x).hex()


FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def parse_float(v, form):
    """parse_float is the float that a text stands for, rounded to its width once."""
    words = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    if isinstance(v, Number):
        need(len(v) < 30 or form == "<d", "not the shortest")
        x = float(v)
        need(x - x == 0, "no finite number")
        return bits(x, form)
    need(v in words, "neither a number nor NaN, Infinity, -Infinity")
    return bits(float(words[v]), form)


def parse(v, t):
    """parse reads a value of JSON back by its type."""
    if v is None:
        return None
    kind = t[0]
    if kind == "null":
        raise Bad("not null")
    if kind == "bool":
        need(isinstance(v, bool), "no boolean")
        return v
    if kind == "int":
        need(isinstance(v, Number) and re.fullmatch(r"-?\d+", v), "no integer")
        return int(v)
    if kind in FLOATS:
        return parse_float(v, FLOATS[kind])
    if kind == "decimal":
        need(isinstance(v, Number) and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", v), "no decimal number")
        need(len(v.partition(".")[2]) == t[1], f"not {t[1]} digits of its scale")
        return int(v.replace(".", ""))
    if kind == "list":
        need(isinstance(v, list) and not isinstance(v, Pairs), "no array")
        return [parse(x, t[1]) for x in v]
    if kind == "struct":
        need(isinstance(v, Pairs), "no object")
        need([n for n, _ in v] == [n for n, _ in t[1]], "other names")
        return [(n, parse(x, u)) for (n, x), (_, u) in zip(v, t[1])]
    if kind == "map":
        if t[1] == ("text",):
            need(isinstance(v, Pairs), "no object")
            return [(n, parse(x, t[2])) for n, x in v]
        entries = []
        need(isinstance(v, list) and not isinstance(v, Pairs), "no array")
        for e in v:
            need(isinstance(e, Pairs) and [n for n, _ in e] == ["key", "value"], "no key and value")
            entries.append((parse(e[0][1], t[1]), parse(e[1][1], t[2])))
        return entries
    need(isinstance(v, str) and not isinstance(v, Number), "no string")
    if kind == "text":
        return v
    if kind == "bytes":
        return base64.b64decode(v, validate=True)
    if kind == "uuid":
        need(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", v), "no UUID")
        return uuid.UUID(v).bytes
    if kind == "day":
        return parse_day(v)
    if kind == "time":
        return parse_time(v)
    if kind == "ts":
        return parse_ts(v, v.endswith("Z") if t[2] is None else t[2])
    if kind == "interval":
        m = re.fullmatch(r"P(\d+)M(\d+)DT(\d+)\.(\d{3})S", v)
        need(m, "no interval")
        return int(m[1]), int(m[2]), int(m[3] + m[4])
    raise TypeError(t)


def of_csv(field, t):
    """of_csv is a field of CSV as JSON would have it. Only what is not quoted is NULL."""
    text, quoted = field
    if not quoted and text == "":
        return None
    kind = t[0]
    if kind == "bool":
        need(text in ("true", "false"), "no boolean")
        return text == "true"
    if kind in ("int", "decimal") or kind in FLOATS and text not in ("NaN", "Infinity", "-Infinity"):
        need(re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", text), "no number")
        return Number(text)
    return text


def csv_rows(text):
    """csv_rows reads RFC 4180 to the letter, but for LF: (text, was it quoted) a field."""
    at, row = 0, []
    while at < len(text):
        if text[at] == '"':
            parts = []
            while True:
                end = text.index('"', at + 1)
                parts.append(text[at + 1:end])
                at = end + 1
                if text[at] != '"':
                    break
            row.append(('"'.join(parts), True))
        else:
            m = re.compile(r'[^",\r\n]*').match(text, at)
            row.append((m[0], False))
            at = m.end()
        need(text[at] in ",\n", f"{text[at]!r} behind a field")
        if text[at] == "\n":
            yield row
            row = []
        at += 1
        if at == len(text):
            need(not row, "no end of the last line")


# What readers give.

def arrow_type(t, text=False):
    """arrow_type is a type of Arrow; text: its bytes are declared to be text."""
    if isinstance(t, pa.BaseExtensionType):
        return ("uuid",) if t.extension_name == "arrow.uuid" else arrow_type(t.storage_type)
    if pa.types.is_dictionary(t):
        return arrow_type(t.value_type)
    if pa.types.is_map(t):
        return ("map", arrow_type(t.key_type), arrow_type(t.item_type))
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        return ("list", arrow_type(t.value_type))
    if pa.types.is_struct(t):
        return ("struct", [(f.name, arrow_type(f.type)) for f in t])
    if pa.types.is_timestamp(t):
        return ("ts", t.unit, t.tz is not None)
    if pa.types.is_time(t):
        return ("time", t.unit)
    if pa.types.is_decimal(t):
        return ("decimal", t.scale)
    if pa.types.is_integer(t) or pa.types.is_duration(t):
        return ("int",)
    for is_it, name in ((pa.types.is_null, "null"), (pa.types.is_boolean, "bool"), (pa.types.is_date, "day"), (pa.types.is_float16, "f16"),
                        (pa.types.is_float32, "f32"), (pa.types.is_float64, "f64"), (pa.types.is_string, "text"),
                        (pa.types.is_large_string, "text"), (pa.types.is_interval, "interval")):
        if is_it(t):
            return (name,)
    return ("text",) if text else ("bytes",)


def arrow_value(x, t):
    """arrow_value is a scalar of Arrow as parse gives values."""
    if x is None or not x.is_valid:
        return None
    kind = t[0]
    if isinstance(x, pa.ExtensionScalar):
        x = x.value
    if isinstance(x, pa.DictionaryScalar):
        x = x.value
    if kind == "list":
        return [arrow_value(v, t[1]) for v in x.values]
    if kind == "map":
        return [(arrow_value(e[0], t[1]), arrow_value(e[1], t[2])) for e in x.values]
    if kind == "struct":
        return [(n, arrow_value(x[i], u)) for i, (n, u) in enumerate(t[1])]
    if kind == "ts" or kind == "time":
        return x.value * UNITS[t[1]]
    if kind == "day":
        return x.value if pa.types.is_date32(x.type) else x.value // 86400000
    if kind in FLOATS:
        return bits(x.as_py(), FLOATS[kind])
    if kind == "decimal":
        sign, digits, _ = x.as_py().as_tuple()
        return int("".join(map(str, digits))) * (-1 if sign else 1)
    if kind == "text":
        return x.as_buffer().to_pybytes().decode("utf-8", "replace")
    if kind in ("bytes", "uuid"):
        return x.as_buffer().to_pybytes() if hasattr(x, "as_buffer") else bytes(x.as_py())
    if kind == "interval":
        v = x.as_py()
        return struct.unpack("<III", v) if isinstance(v, bytes) else (v.months, v.days, v.nanoseconds // 10 ** 6)
    if kind == "int" and hasattr(x, "value"):
        return x.value
    return x.as_py()


def pyarrow_columns(name, about):
    f = pq.ParquetFile(name, coerce_int96_timestamp_unit=about.get("int96"))
    leaves = [f.schema.column(i) for i in range(len(f.schema))]
    texts = {c.path for c in leaves if c.logical_type.type in ("ENUM", "JSON", "STRING") or c.converted_type in ("ENUM", "JSON")}
    intervals = {c.path for c in leaves if c.converted_type == "INTERVAL"}
    for n, c in zip(f.schema_arrow.names, f.read().columns):
        t = ("interval",) if n in intervals else arrow_type(c.type, n in texts)
        yield n, t, [arrow_value(x, t) for x in c]


def duckdb_columns(name, about):
    c = duckdb.connect()
    c.execute("set timezone = 'UTC'; set threads = 1; set preserve_insertion_order = true")
    names = [n for n, *_ in c.execute("describe select * from read_parquet(?)", [name]).fetchall()]
    asked = [n for n in names if n not in about.get("not_duckdb_columns", {})]
    t = c.sql("select " + ", ".join('"' + n.replace('"', '""') + '"' for n in asked) + " from read_parquet(?)", params=[name]).to_arrow_table()
    for n in names:
        if n not in asked:
            yield n, None, []
            continue
        column = t.column(n)
        u = arrow_type(column.type)
        if about.get("duckdb_zones") is False:
            u = any_zone(u)
        yield n, u, [arrow_value(x, u) for x in column]


def any_zone(t):
    """any_zone is a type whose instants are UTC or local."""
    if isinstance(t, (tuple, list)):
        return t[:2] + (None,) if t and t[0] == "ts" else type(t)(any_zone(x) for x in t)
    return t


def avro_type(t, named):
    if isinstance(t, list):
        rest = [x for x in t if x != "null"]
        if len(rest) != 1:
            raise TypeError(t)
        return avro_type(rest[0], named)
    if isinstance(t, str):
        if t in named:
            return named[t]
        return {"boolean": ("bool",), "int": ("int",), "long": ("int",), "float": ("f32",), "double": ("f64",), "string": ("text",),
                "bytes": ("bytes",), "null": ("null",)}[t]
    kind, logical = t["type"], t.get("logicalType", "")
    if kind == "array":
        return ("list", avro_type(t["items"], named))
    if kind == "map":
        return ("map", ("text",), avro_type(t["values"], named))
    if kind == "record":
        return ("struct", [(f["name"], avro_type(f["type"], named)) for f in t["fields"]])
    if logical == "decimal":
        u = ("decimal", t.get("scale", 0))
    elif logical == "uuid":
        u = ("uuid",)
    elif logical == "date":
        u = ("day",)
    elif logical.startswith("time-"):
        u = ("time", logical.split("-")[-1])
    elif "timestamp-" in logical:
        u = ("ts", logical.split("-")[-1], not logical.startswith("local-"))
    elif logical == "duration":
        u = ("interval",)
    elif kind == "enum":
        u = ("text",)
    elif kind == "fixed":
        u = ("bytes",)
    else:
        u = avro_type(kind, named)
    if "name" in t:
        named[t["name"]] = u
    return u


def avro_named(t, named):
    """avro_named fills named with the records too, which are asked for by name alone."""
    if isinstance(t, list):
        for x in t:
            avro_named(x, named)
    elif isinstance(t, dict):
        for x in t.get("fields", []):
            avro_named(x["type"], named)
        for k in ("items", "values"):
            if k in t:
                avro_named(t[k], named)
        if isinstance(t["type"], (dict, list)):
            avro_named(t["type"], named)
        if "name" in t:
            named[t["name"]] = avro_type(t, named)


def avro_value(x, t):
    if x is None:
        return None
    kind = t[0]
    if kind == "list":
        return [avro_value(v, t[1]) for v in x]
    if kind == "map":
        return [(k, avro_value(v, t[2])) for k, v in x.items()]
    if kind == "struct":
        return [(n, avro_value(x[n], u)) for n, u in t[1]]
    if kind in FLOATS:
        return bits(x, FLOATS[kind])
    if kind == "decimal":
        return int.from_bytes(x, "big", signed=True)
    if kind == "uuid":
        return x if isinstance(x, bytes) else uuid.UUID(x).bytes
    if kind == "interval":
        return struct.unpack("<III", x)
    if kind in ("ts", "time"):
        return x * UNITS[t[1]]
    return x


def fastavro_columns(name, about):
    with open(name, "rb") as f:
        schema = schema_of(f.read())
    with open(about.get("same", name), "rb") as f:
        data = f.read()
    data = with_meta(data, schema=json.dumps(raw(schema_of(data))).encode())
    rows = list(fastavro.reader(io.BytesIO(data)))
    named = {}
    avro_named(schema, named)
    for f in schema["fields"]:
        t = avro_type(f["type"], named)
        yield f["name"], t, [avro_value(r[f["name"]], t) for r in rows]


# The comparison.

compared = {"values": 0, "files": 0}
most = 3  # differences told of a column


def tell(name, column, row, got, want, why=""):
    print(json.dumps({"file": name, "column": column, "row": row, "got": repr(got)[:300], "want": repr(want)[:300], "why": why}), flush=True)


def hold(name, by, columns, names, rows, form):
    """hold compares rows of text with a reader's columns. form makes JSON's value of one."""
    if [c[0] for c in columns] != names:
        tell(name, "", 0, names, [c[0] for c in columns], f"the columns by {by}")
        return
    for i, (column, t, values) in enumerate(columns):
        if t is None:
            continue
        told = n = 0
        for n, want in enumerate(values, 1):
            if n > len(rows):
                continue
            try:
                got = parse(form(rows[n - 1][i], t), t)
                why = f"by {by}, {t}"
                if by == "duckdb" and t[0] in ("time", "ts") and got is not None:
                    got -= got % UNITS[t[1]]  # it has no finer ones
            except (Bad, ValueError) as e:
                got, why = rows[n - 1][i], f"by {by}, {t}: {e}"
                want = (want,)
            compared["values"] += 1
            if got != want and told < most:
                told += 1
                tell(name, column, n - 1, got, want, why)
        if n != len(rows):
            tell(name, column, 0, f"{len(rows)} rows", f"{n} rows", f"by {by}")


def json_rows(name):
    with open(name + ".jsonl", encoding="utf-8", newline="\n") as f:
        text = f.read()
    need(text == "" or text.endswith("\n"), "no end of the last line")
    return [load(line) for line in text.split("\n")[:-1]]


def compare(name, about):
    compared["files"] += 1
    readers = {"fastavro": fastavro_columns} if name.endswith(".avro") else {"pyarrow": pyarrow_columns, "duckdb": duckdb_columns}
    for by, read in readers.items():
        if "not_" + by in about:
            continue
        try:
            columns = list(read(name, about))
        except Exception as e:
            tell(name, "", 0, None, None, f"{by} does not read it: {e}")
            continue
        try:
            rows = json_rows(name)
        except (Bad, ValueError) as e:
            tell(name, "", 0, None, None, f"JSON lines: {e}")
            return
        if rows:
            names = [n for n, _ in rows[0]]
            if any([n for n, _ in r] != names for r in rows):
                tell(name, "", 0, None, names, "not the same names in each line")
            hold(name, by, columns, names, [[v for _, v in r] for r in rows], lambda v, t: v)
        elif any(values for _, _, values in columns):
            tell(name, "", 0, "no rows", "rows", f"by {by}")
        if about["flat"] and by != "duckdb":
            try:
                with open(name + ".csv", encoding="utf-8", newline="") as f:
                    rows = list(csv_rows(f.read()))
                need(rows, "no line of names")
            except (Bad, ValueError, IndexError) as e:
                tell(name + ".csv", "", 0, None, None, f"CSV: {e!r}")
                return
            hold(name + ".csv", by, columns, [v for v, _ in rows[0]], rows[1:], of_csv)


with open("expect.json") as f:
    expect = json.load(f)
for name, about in expect.items():
    if os.path.exists(name + ".jsonl"):
        compare(name, about)
print(json.dumps(compared))
