"""Writes files of every type, codec, encoding and nesting into a folder, by pyarrow,
DuckDB and fastavro: make.py DIR. The same values each time. expect.json there says of
each what its comparison is to know (compare.py). make.py DIR wide writes a file whose
every row is 10 MB of text in 10,000 columns, and is small itself."""
import io, json, math, os, random, struct, sys, uuid
from decimal import Decimal, getcontext

import duckdb, fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from avroheader import raw, with_blocks, with_meta

getcontext().prec = 100
os.chdir(sys.argv[1])
R = random.Random(1)
expect = {}

TEXTS = ["", " ", "a", "null", "NULL", "\\N", "é", "日本語", "𝄞🜚", "a,b", 'say "hi"', "'", "two\nlines", "\r\n",
         "\ttab\t", "nul\x00in", "back\\slash", "\x1b[1mred\x7f\x80", "\u2028\u2029", "\ufeffbom", "\ufffd",
         "</script>&amp;", "{}", "[1]", "1e5", "-0", "long " * 200, "\x01\x02\x1f"]


def ints(bits, signed=True):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [0, 1, low, high, high - 1, low + 1, 7, 42] + ([-1] if signed else [high >> 1, (high >> 1) + 1])


def floats(mantissa, low, high):
    tiny, huge = 2.0 ** low, (2 - 2.0 ** -mantissa) * 2.0 ** high
    return [0.0, -0.0, 1.0, -1.5, 0.5, tiny, -tiny, huge, -huge, math.nan, math.inf, -math.inf, 3.0, 100.0]


def decimals(precision, scale):
    biggest = 10 ** precision - 1
    values = [0, 1, -1, biggest, -biggest, 10 ** (precision // 2), -(10 ** (precision - 1)), 5]
    return [Decimal(v).scaleb(-scale) for v in values]


DAYS = [0, 1, -1, 20484, -719162, 2932896, -25567, 11016, -141428, -719528 + 400]  # 0001-01-01 to 9999-12-31
DAY = 86400
SECONDS = [0, 1, -1, 1767225599, -62135596800, 253402300799, -2208988800, 951782400, -12219292800, -DAY]


def stamps(unit):
    per = {"s": 1, "ms": 10 ** 3, "us": 10 ** 6, "ns": 10 ** 9}[unit]
    values = [s * per + f for s in SECONDS for f in (0, per - 1, per // 2)]
    return [v for v in values if abs(v) < 1 << 63]


def times(unit):
    per = {"s": 1, "ms": 10 ** 3, "us": 10 ** 6, "ns": 10 ** 9}[unit]
    return [0, 1 * per, DAY * per - 1, 3661 * per + per // 3, 43200 * per]


def pool(t):
    """pool is some values of a type, the odd ones among them."""
    if pa.types.is_boolean(t):
        return [True, False]
    if pa.types.is_integer(t):
        return ints(t.bit_width, pa.types.is_signed_integer(t))
    if pa.types.is_float16(t):
        return floats(10, -24, 15)
    if pa.types.is_float32(t):
        return floats(23, -149, 127) + [R.uniform(-1e6, 1e6) for _ in range(40)] + [10.0 ** e for e in range(-30, 30, 7)]
    if pa.types.is_float64(t):
        return (floats(52, -1074, 1023) + [R.uniform(-1e6, 1e6) for _ in range(40)] + [0.1, 0.3, 1e21, 1e-7, 123456789012345680.0]
                + [10.0 ** e for e in range(-300, 300, 37)])
    if pa.types.is_decimal(t):
        return decimals(t.precision, t.scale)
    if pa.types.is_date(t):
        return DAYS
    if pa.types.is_timestamp(t):
        return stamps(t.unit)
    if pa.types.is_time(t):
        return times(t.unit)
    if pa.types.is_string(t):
        return TEXTS
    if pa.types.is_fixed_size_binary(t):
        n = t.byte_width
        return [bytes(n), b"\xff" * n, bytes(range(n)), b"a" * n] + [R.randbytes(n) for _ in range(9)]
    if pa.types.is_binary(t):
        return [b"", b"\x00", b"a", b"\xff\xfe", b"plain text", bytes(range(256))] + [R.randbytes(n) for n in range(1, 9)]
    raise TypeError(t)


pools = {}


def one(t, nullable=True, depth=0):
    """one is a value of a type, at random: nulls and empty ones at every level."""
    if nullable and R.random() < (0.15 if depth else 0.2):
        return None
    if pa.types.is_struct(t):
        return {f.name: one(f.type, f.nullable, depth + 1) for f in t}
    if pa.types.is_map(t):
        n = R.choice([0, 1, 1, 2, 3])
        keys = {repr(k): k for k in (one(t.key_type, False, depth + 1) for _ in range(n))}
        return [(k, one(t.item_type, t.item_field.nullable, depth + 1)) for k in keys.values()]
    if pa.types.is_list(t):
        return [one(t.value_type, t.value_field.nullable, depth + 1) for _ in range(R.choice([0, 1, 1, 2, 3, 5]))]
    if pa.types.is_null(t):
        return None
    values = pools.setdefault(str(t), pool(t))
    return R.choice(values)


def column(f, n):
    t = f.type
    if pa.types.is_nested(t) or pa.types.is_null(t):
        return pa.array([one(t, f.nullable) for _ in range(n)], t)
    values = list(pools.setdefault(str(t), pool(t)))[:n]  # each of them once
    values += [one(t, f.nullable) for _ in range(n - len(values))]
    return pa.array(values, t)


def table(fields, n):
    schema = pa.schema([f if isinstance(f, pa.Field) else pa.field(*f) for f in fields])
    return pa.table([column(f, n) for f in schema], schema=schema)


FLAT = [
    ("id", pa.int64(), False), ("b", pa.bool_()),
    ("i8", pa.int8()), ("i16", pa.int16()), ("i32", pa.int32()), ("i64", pa.int64()),
    ("u8", pa.uint8()), ("u16", pa.uint16()), ("u32", pa.uint32()), ("u64", pa.uint64()),
    ("f16", pa.float16()), ("f32", pa.float32()), ("f64", pa.float64()), ("f64_required", pa.float64(), False),
    ("d4", pa.decimal128(4, 2)), ("d9", pa.decimal128(9, 0)), ("d18", pa.decimal128(18, 9)), ("d19", pa.decimal128(19, 19)),
    ("d38", pa.decimal128(38, 10)), ("d38_38", pa.decimal128(38, 38)), ("d76", pa.decimal256(76, 30)),
    ("day", pa.date32()), ("t_ms", pa.time32("ms")), ("t_us", pa.time64("us")), ("t_ns", pa.time64("ns")),
    ("ts_ms", pa.timestamp("ms")), ("ts_us", pa.timestamp("us")), ("ts_ns", pa.timestamp("ns")),
    ("tz_ms", pa.timestamp("ms", "UTC")), ("tz_us", pa.timestamp("us", "America/New_York")), ("tz_ns", pa.timestamp("ns", "UTC")),
    ("s", pa.string()), ("s_required", pa.string(), False), ("bin", pa.binary()), ("fixed7", pa.binary(7)),
    ("nothing", pa.null()), ("Ünï \"odd\", name.x", pa.int32()), ("only_nulls", pa.string()),
]
text, number, price = pa.string(), pa.int64(), pa.decimal128(20, 4)


def required(t, name="element"):
    return pa.field(name, t, nullable=False)


NESTED = [
    ("id", pa.int32(), False),
    ("l", pa.list_(pa.int32())), ("l_req", pa.list_(required(text)), False), ("ll", pa.list_(pa.list_(text))),
    ("lll", pa.list_(pa.list_(required(pa.list_(required(pa.bool_())))))),
    ("m", pa.map_(text, number)), ("m_req", pa.map_(text, required(number, "value")), False),
    ("m_int", pa.map_(pa.int32(), pa.float64())), ("m_day", pa.map_(pa.date32(), text)),
    ("m_price", pa.map_(price, pa.binary())), ("m_m", pa.map_(text, pa.map_(text, number))),
    ("s", pa.struct([("a", pa.int32()), ("b", text), ("c", pa.struct([("p", price), ("t", pa.timestamp("us", "UTC"))]))])),
    ("s_req", pa.struct([required(pa.int64(), "a"), pa.field("b", pa.struct([required(text, "x"), pa.field("y", pa.float32())]))]), False),
    ("lsm", pa.list_(pa.struct([("k", pa.int32()), ("m", pa.map_(text, pa.list_(price))), ("u", pa.binary())]))),
    ("mls", pa.map_(text, pa.list_(pa.struct([("when", pa.timestamp("ms")), ("l", pa.list_(pa.time64("us")))])))),
    ("sls", pa.struct([("l", pa.list_(pa.struct([("l", pa.list_(pa.struct([("z", number)])))]))), ("after", text)])),
    ("after", text),
]


D76 = {"d76": "a decimal of more than 38 digits is a DOUBLE there"}
NO_SPLIT = "BYTE_STREAM_SPLIT of fixed-length bytes is not read"


def write(name, t, flat=False, **options):
    about = {"flat": flat}
    if "d76" in t.column_names:
        about["not_duckdb_columns"] = dict(D76)
    for k in ("not_duckdb", "not_duckdb_columns", "int96"):
        if k in options:
            about[k] = options.pop(k)
    expect[name] = about
    options = {"version": "2.6", "store_schema": False, **options}
    pq.write_table(t, name, **options)


def flats(n):
    t = table(FLAT, n)
    i = t.schema.get_field_index("id")
    t = t.set_column(i, t.schema.field("id"), pa.array(range(n), pa.int64()))
    i = t.schema.get_field_index("only_nulls")
    return t.set_column(i, t.schema.field("only_nulls"), pa.nulls(n, pa.string()))


def by_pyarrow():
    flat, nested = flats(120), table(NESTED, 100)
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        for version in ("1.0", "2.0"):
            for dictionary in (True, False):
                name = f"{codec}-v{version[0]}-{'dict' if dictionary else 'plain'}.parquet"
                options = {"compression": codec, "data_page_version": version, "use_dictionary": dictionary,
                           "data_page_size": 700, "write_batch_size": 16, "row_group_size": 50}
                write("flat-" + name, flat, True, **options)
                write("nested-" + name, nested, **options)
    # What codec it is has nothing to do with how values are encoded.
    for version in ("1.0", "2.0"):
        delta = {f.name: "DELTA_BINARY_PACKED" for f in flat.schema if pa.types.is_integer(f.type) or pa.types.is_temporal(f.type)}
        delta |= {n: "DELTA_LENGTH_BYTE_ARRAY" for n in ("s", "bin")} | {n: "DELTA_BYTE_ARRAY" for n in ("s_required", "fixed7", "d38", "d76", "only_nulls")}
        delta |= {"b": "RLE"}
        options = {"use_dictionary": False, "data_page_version": version, "data_page_size": 700, "write_batch_size": 16}
        write(f"delta-v{version[0]}.parquet", flat, True, column_encoding=delta, **options)
        split = {f.name: "BYTE_STREAM_SPLIT" for f in flat.schema if pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
                 or pa.types.is_temporal(f.type) or f.name in ("i32", "i64", "u32", "u64", "fixed7")}
        split |= {"s": "DELTA_BYTE_ARRAY", "bin": "DELTA_BYTE_ARRAY"}
        write(f"split-v{version[0]}.parquet", flat, True, column_encoding=split, **options)
        expect[f"split-v{version[0]}.parquet"]["not_duckdb_columns"] = {n: NO_SPLIT for n in ("f16", "fixed7", "d4", "d9", "d18", "d19", "d38", "d38_38", "d76")}
        leaves = {"l.list.element": "DELTA_BINARY_PACKED", "after": "DELTA_BYTE_ARRAY", "m.key_value.key": "DELTA_BYTE_ARRAY",
                  "lsm.list.element.m.key_value.value.list.element": "BYTE_STREAM_SPLIT", "id": "DELTA_BINARY_PACKED"}
        write(f"nested-delta-v{version[0]}.parquet", nested, column_encoding=leaves, row_group_size=41, not_duckdb_columns={"lsm": NO_SPLIT}, **options)
    # Decimals as integers where they fit, INT96, the older format, lists as older writers have them.
    write("decimal-integers.parquet", flat.select(["id", "d4", "d9", "d18", "d19", "d38"]), True, store_decimal_as_integer=True)
    write("int96.parquet", flat.select(["id", "ts_ms", "ts_us", "ts_ns", "tz_ms"]).set_column(
        1, "ts_ms", flat["ts_ms"]).select(["id", "ts_ns"]), True, use_deprecated_int96_timestamps=True)
    whole = flat.drop(["nothing"])
    write("version1.parquet", whole, True, version="1.0", coerce_timestamps="us", allow_truncated_timestamps=True)
    write("arrow-schema.parquet", whole, True, store_schema=True)
    write("items.parquet", nested, use_compliant_nested_type=False)
    write("nested-arrow-schema.parquet", nested, store_schema=True)
    # Extreme instants: no other reader but pyarrow has all of them.
    far = [(1 << 63) - 1, -(1 << 63) + 1, 0, None, 253402300800000, -62135596800001, -62167219200000, -62167219200001]
    write("far.parquet", pa.table({"ms": pa.array(far, pa.timestamp("ms")), "us": pa.array(far, pa.timestamp("us", "UTC")),
                                   "ns": pa.array(far, pa.timestamp("ns")),
                                   "day": pa.array([(1 << 31) - 1, -(1 << 31) + 1, 2932897, None, -719163, -719528, -719529, 0], pa.date32())}),
          True, not_duckdb="instants that DuckDB has not")
    # Of the footer of this one those of older writers are made: lists in lists of required elements.
    inner = pa.struct([required(pa.int32(), "a"), pa.field("b", text), pa.field("names", pa.list_(required(text)))])
    write("two-levels.parquet", table([("id", pa.int32(), False), ("numbers", pa.list_(required(pa.int32()))), ("texts", pa.list_(required(text))),
                                       ("records", pa.list_(required(inner))), ("ones", pa.list_(required(pa.struct([("only", text)]))))], 60))
    # Sizes.
    write("norows.parquet", flat.slice(0, 0), True)
    write("nested-norows.parquet", nested.slice(0, 0))
    expect["nogroups.parquet"] = expect["norows.parquet"]
    with pq.ParquetWriter("nogroups.parquet", flat.schema, store_schema=False):
        pass
    write("onerow.parquet", flat.slice(0, 1), True)
    write("groups.parquet", flat, True, row_group_size=1)
    write("index.parquet", flat, True, write_page_index=True, write_page_checksum=True, data_page_size=300, write_batch_size=7)
    write("columns.parquet", pa.table({f"c{i}": pa.array([[i, None, -i], ["a", None, str(i)], [[i], [], None]][i % 3]) for i in range(10_000)}))
    n = 6000
    write("many.parquet", pa.table({
        "i": pa.array([None if i % 11 == 0 else i // 3 for i in range(n)], pa.int64()),
        "s": pa.array([None if i % 5 == 0 else f"text {i % 700}" for i in range(n)]),
        "l": pa.array([None if i % 13 == 0 else list(range(i % 4)) for i in range(n)], pa.list_(pa.int32())),
        "runs": pa.array([None if (i // 1500) % 2 else i // 1024 for i in range(n)], pa.int32()),
        "b": pa.array([(i // 2000) % 2 == 0 for i in range(n)]),
        "big": pa.array([("x" * 3000 if i % 1000 == 0 else "y") for i in range(n)]),
    }), row_group_size=2500, data_page_size=5000, dictionary_pagesize_limit=3000)
    longest = ["z" * 3_000_000, "", None, "ÿ" * 100_000]
    write("long.parquet", pa.table({"s": pa.array(longest), "b": pa.array([v and v.encode() for v in longest], pa.binary())}), True)
    write("uuid.parquet", pa.table({"u": pa.array([uuid.UUID(int=i * 0x1234567890abcdef1234567890 + 5).bytes if i % 3 else None for i in range(9)], pa.uuid())}), True)
    documents = ['{"a": [1, null]}', "null", '"x"', None, "[]", '{"é": "\\u0000"}']
    write("json.parquet", pa.table({"j": pa.array(documents, pa.json_())}), True)
    write("dictionary.parquet", pa.table({"s": pa.array([R.choice(TEXTS + [None]) for _ in range(5000)]).dictionary_encode()}), True)


def by_duckdb():
    c = duckdb.connect()
    c.execute("set timezone = 'UTC'; create type mood as enum ('sad', 'ok', 'ha,ppy', '')")
    c.execute("""create table t as select i::integer as id, i % 3 = 0 as b, (i - 50)::tinyint as i8, (i * 300 - 9000)::smallint as i16,
        i * 20000000 as i32, (i::bigint * 92233720368547758) as i64, (i * 2)::utinyint as u8, (i * 600)::usmallint as u16,
        (i::bigint * 40000000)::uinteger as u32, (i::hugeint * 184467440737095516)::ubigint as u64,
        (i::float / 7) as f32, (i::double / 7) as f64, case i when 0 then 'nan' when 1 then 'inf' when 2 then '-inf' else '-0' end::double as odd,
        (i / 100)::decimal(4, 2) as d4, (i / 7)::decimal(9, 3) as d9, (-i / 7)::decimal(18, 6) as d18, (i::decimal(38, 10) * 1234567890123456) as d38,
        date '2026-01-31' - i * 7000 as day, time '23:59:59.999999' - to_microseconds(i::bigint * 863999999) as t,
        timestamp '2026-01-31 12:34:56.123456' - to_days(i * 7000) as ts, (timestamp '2026-01-31 12:34:56' - to_days(i))::timestamp_s as ts_s,
        (timestamp '2026-01-31 12:34:56.789' - to_days(i))::timestamp_ms as ts_ms, (timestamp '2026-01-31 12:34:56.789' - to_days(i))::timestamp_ns as ts_ns,
        timestamptz '2026-01-31 12:34:56.123456+00' - to_days(i) as tz,
        case when i % 4 = 0 then null else 'text ' || (i % 9) end as s, ('\\x00\\xFF' || i)::blob as bin,
        md5(i::varchar)::uuid as u, (['sad', 'ok', 'ha,ppy', ''])[1 + i % 4]::mood as mood
        from (select i::integer as i from range(100) r(i))""")
    c.execute("""create table n as select i::integer as id,
        case when i % 5 = 0 then null else range(i % 4) end as l, case when i % 3 = 0 then [] else [null, [i], []] end as ll,
        case when i % 4 = 0 then null else {'a': i, 'b': {'c': 'x' || i, 'd': null::date}} end as st,
        map {'k' || i: [i, null], 'z': []} as m, map {i: {'x': i::decimal(5, 1)}} as mi,
        [{'p': uuid '00112233-4455-6677-8899-aabbccddeeff', 'q': [map {'a': i}]}] as deep, [i, i, i]::integer[3] as arr
        from range(100) r(i)""")
    for codec in ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"):
        for version in ("V1", "V2"):
            for src, name in (("t", "flat"), ("n", "nested")):
                file = f"duckdb-{name}-{codec}-{version.lower()}.parquet"
                c.execute(f"copy {src} to '{file}' (format parquet, codec {codec}, parquet_version {version}, row_group_size 2048)")
                expect[file] = {"flat": src == "t"}
    c.execute("copy (select '{\"a\": 1}'::json as j) to 'duckdb-json.parquet' (format parquet)")
    expect["duckdb-json.parquet"] = {"flat": True}
    c.execute("copy (select i from t, range(0) r(i)) to 'duckdb-norows.parquet' (format parquet)")
    expect["duckdb-norows.parquet"] = {"flat": True}
    c.execute("copy (select i::bigint as i, 'v' || (i % 1000) as s, i % 10 as k from range(20000) r(i)) to 'duckdb-many.parquet' (format parquet)")
    expect["duckdb-many.parquet"] = {"flat": True}
    c.execute("copy (select interval '3 months 2 days' + to_microseconds(i * 1001000) as v, i from range(5) r(i)) to 'duckdb-interval.parquet' (format parquet)")
    expect["duckdb-interval.parquet"] = {"flat": True}


def by_fastavro():
    fixed = {"type": "fixed", "name": "f5", "size": 5}
    enum = {"type": "enum", "name": "suit", "symbols": ["SPADES", "HEARTS"]}

    def logical(t, name, **more):
        return {"type": t, "logicalType": name, **more}
    simple = {
        "b": "boolean", "i": "int", "l": "long", "f": "float", "d": "double", "s": "string", "y": "bytes", "nil": "null",
        "fx": fixed, "en": enum, "day": logical("int", "date"), "t_ms": logical("int", "time-millis"), "t_us": logical("long", "time-micros"),
        "ts_ms": logical("long", "timestamp-millis"), "ts_us": logical("long", "timestamp-micros"), "ts_ns": logical("long", "timestamp-nanos"),
        "lts_ms": logical("long", "local-timestamp-millis"), "lts_us": logical("long", "local-timestamp-micros"),
        "lts_ns": logical("long", "local-timestamp-nanos"),
        "dec": logical("bytes", "decimal", precision=20, scale=5), "dec0": logical("bytes", "decimal", precision=9),
        "decf": {"type": "fixed", "name": "df", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 10},
        "dur": {"type": "fixed", "name": "f12", "size": 12, "logicalType": "duration"}, "u": logical("string", "uuid"), "uf": {"type": "fixed", "name": "uf16", "size": 16, "logicalType": "uuid"},
    }
    values = {
        "b": [True, False], "i": ints(32), "l": ints(64), "f": [v for v in pool(pa.float32())], "d": pool(pa.float64()), "s": TEXTS,
        "y": pool(pa.binary()), "nil": [None], "fx": [b"\x00\xff\x00ab", b"hello"], "en": ["SPADES", "HEARTS"], "day": DAYS,
        "t_ms": times("ms"), "t_us": times("us"), "ts_ms": stamps("ms"), "ts_us": stamps("us"), "ts_ns": stamps("ns"),
        "lts_ms": stamps("ms"), "lts_us": stamps("us"), "lts_ns": stamps("ns"),
        "dec": [int(v.scaleb(5)).to_bytes(10, "big", signed=True) for v in decimals(20, 5)] + [b"\x05", b"\xff", b"\x00\x00\x01"],
        "dec0": [(v).to_bytes(4, "big", signed=True) for v in (0, 1, -1, 999999999, -999999999)],
        "decf": [int(v.scaleb(10)).to_bytes(16, "big", signed=True) for v in decimals(38, 10)],
        "dur": [bytes(12), b"\xff" * 12, struct.pack("<III", 14, 3, 4500)],
        "u": [str(uuid.UUID(int=i * 0x1234567890abcdef1234567890 + 5)) for i in range(4)],
        "uf": [uuid.UUID(int=i * 0x1234567890abcdef1234567890 + 5).bytes for i in range(4)],
    }

    def avro(name, fields, records, codec="null", interval=16000, flat=False):
        schema = {"type": "record", "name": "row", "fields": fields}
        by = "null" if codec == "zstandard" else codec  # needs one more module there
        out = io.BytesIO()
        fastavro.writer(out, raw(schema), records, codec=by, sync_interval=interval, metadata={"who": "x"})
        data = with_meta(out.getvalue(), schema=json.dumps(schema).encode(), codec=codec.encode())
        expect[name] = {"flat": flat}
        if by != codec:
            data = with_blocks(data, lambda b: pa.compress(b, codec="zstd", asbytes=True))
            expect[name]["same"] = name.replace(codec, by)
        with open(name, "wb") as f:
            f.write(data)

    n = 120
    fields = [{"name": k, "type": t} for k, t in simple.items()]
    fields += [{"name": "o_" + k, "type": ["null", t["name"] if isinstance(t, dict) and "name" in t else t]} for k, t in simple.items() if k != "nil"]
    fields += [{"name": "r_s", "type": ["string", "null"], "default": "x"}]
    rows = []
    for i in range(n):
        row = {k: (v[i] if i < len(v) else R.choice(v)) for k, v in values.items()}
        row |= {"o_" + k: None if R.random() < 0.3 else R.choice(v) for k, v in values.items() if k != "nil"}
        rows.append(row | {"r_s": R.choice(["", None, "y"])})
    for codec in ("null", "deflate", "snappy", "zstandard", "bzip2", "xz"):
        avro(f"flat-{codec}.avro", fields, rows, codec, 3000, True)
    tree = {"type": "record", "name": "pair", "fields": [
        {"name": "a", "type": ["null", "int"]}, {"name": "m", "type": {"type": "map", "values": ["null", {"type": "array", "items": "double"}]}},
        {"name": "e", "type": enum}, {"name": "when", "type": logical("long", "timestamp-micros")}]}
    nested = [
        {"name": "id", "type": "long"}, {"name": "l", "type": {"type": "array", "items": "string"}},
        {"name": "ol", "type": ["null", {"type": "array", "items": ["null", "int"]}]},
        {"name": "ll", "type": {"type": "array", "items": {"type": "array", "items": "boolean"}}},
        {"name": "m", "type": {"type": "map", "values": "string"}}, {"name": "p", "type": tree}, {"name": "op", "type": ["null", "pair"]},
        {"name": "lp", "type": {"type": "array", "items": ["null", "pair"]}}, {"name": "after", "type": "string"},
    ]

    def maybe(v, p=0.25):
        return None if R.random() < p else v

    def times_(f, most=3):
        return [f() for _ in range(R.randrange(most + 1))]

    def pair():
        return {"a": maybe(R.randrange(99)), "m": {R.choice(TEXTS): maybe(times_(lambda: R.choice(values["d"]))) for _ in range(R.randrange(3))},
                "e": R.choice(["SPADES", "HEARTS"]), "when": R.choice(values["ts_us"])}
    rows = [{"id": i, "l": times_(lambda: R.choice(TEXTS)), "ol": maybe(times_(lambda: maybe(R.randrange(9)))),
             "ll": times_(lambda: times_(lambda: R.random() < 0.5)), "m": {R.choice(TEXTS): R.choice(TEXTS) for _ in range(R.randrange(4))},
             "p": pair(), "op": maybe(pair()), "lp": times_(lambda: maybe(pair())), "after": R.choice(TEXTS)} for i in range(n)]
    for codec in ("null", "deflate"):
        avro(f"nested-{codec}.avro", nested, rows, codec, 2000)
    avro("norows.avro", fields, [], flat=True)
    avro("many.avro", [{"name": "i", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
         [{"i": i, "s": None if i % 7 == 0 else f"text {i % 99}"} for i in range(9000)], "deflate", flat=True)


def wide():
    """wide is many columns: a batch of rows of each is much."""
    values = pa.array(["x" * 1000 + str(i // 500) for i in range(2000)])
    names = [f"c{i:05}" for i in range(10_000)]
    pq.write_table(pa.table([values] * len(names), names=names), "wide.parquet", compression="zstd", store_schema=False, write_statistics=False)


if sys.argv[2:] == ["wide"]:
    wide()
    sys.exit()
by_pyarrow()
by_duckdb()
by_fastavro()
with open("expect.json", "w") as f:
    json.dump(expect, f, indent=1)
