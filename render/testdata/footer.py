"""Files with everything that pyarrow and DuckDB write into a footer, and what pyarrow
reads of one: python footer.py write DIR; python footer.py compare FILE JSON ..."""
import base64, datetime, decimal, json, os, sys, uuid

import pyarrow as pa
import pyarrow.parquet as pq


def write(folder):
    os.chdir(folder)
    utc = datetime.timezone.utc
    moment = datetime.datetime(2026, 1, 31, 12, 34, 56, 123456)
    columns = {
        "bool": pa.array([True, None, False]),
        **{f"i{b}": pa.array([-1, 2, None], getattr(pa, f"int{b}")()) for b in (8, 16, 32, 64)},
        **{f"u{b}": pa.array([0, 2**b - 1, None], getattr(pa, f"uint{b}")()) for b in (8, 16, 32, 64)},
        "exact": pa.array([-(2**63), 2**63 - 1, 0]),
        "f32": pa.array([0.1, -1.5, None], pa.float32()), "f64": pa.array([0.1, 1e300, -2.5]),
        "text": pa.array(["a\"\n", "ä", ""]), "bytes": pa.array([b"\x00\xff", b"b", None]),
        "fixed": pa.array([b"abc", b"abd", b"abe"], pa.binary(3)),
        "uuid": pa.array([bytes(range(16)), None, bytes(16)], pa.uuid()),
        "date": pa.array([datetime.date(2026, 1, 31), datetime.date(1, 1, 1), None]),
        **{f"dec{p}": pa.array([decimal.Decimal("-12.50"), decimal.Decimal("0.01"), None], pa.decimal128(p, 2)) for p in (9, 18, 38)},
        "dec76": pa.array([decimal.Decimal("12345678901234567890123456789012345678901234567890.5"), None, None], pa.decimal256(76, 1)),
        **{f"ts_{u}": pa.array([moment.replace(microsecond=0), None, moment.replace(year=1999, microsecond=0)], pa.timestamp(u)) for u in ("ms", "us", "ns")},
        "zoned": pa.array([moment.replace(tzinfo=utc), None, None], pa.timestamp("us", "UTC")),
        "t32": pa.array([datetime.time(1, 2, 3), None, None], pa.time32("ms")), "t64": pa.array([datetime.time(1, 2, 3, 4), None, None], pa.time64("us")),
        "nothing": pa.array([None] * 3, pa.null()),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "nested": pa.array([{"x": [1, 2], "y": {"z": "q"}}, None, None], pa.struct({"x": pa.list_(pa.int64()), "y": pa.struct({"z": pa.string()})})),
        "a.b": pa.array([1, 2, 3]),
    }
    table = pa.table(columns).replace_schema_metadata({"k": "v" * 1000, "ä": "\"\n"})
    pq.write_table(table, "all-v2.parquet", data_page_version="2.0", write_page_index=True, row_group_size=2, compression="zstd",
                   sorting_columns=[pq.SortingColumn(3, True, True)])
    pq.write_table(table.drop(["nothing"]), "all-v1.parquet", version="1.0", use_dictionary=False, coerce_timestamps="ms", allow_truncated_timestamps=True)
    fields = [pa.field(n, t.type, metadata={"PARQUET:field_id": str(i + 7)}) for i, (n, t) in enumerate(columns.items())]
    pq.write_table(table.cast(pa.schema(fields)), "ids.parquet", store_decimal_as_integer=True, compression={"text": "gzip", "i8": "none"})
    pq.write_table(table.select(["ts_us", "i64"]), "int96.parquet", use_deprecated_int96_timestamps=True)
    with pq.ParquetWriter("nogroups.parquet", table.schema):
        pass
    import duckdb
    duckdb.sql("copy (select range id, 'n' || range % 7 as name, range::decimal(20,3) d, uuid() u, range::hugeint h, now() z, {'a': [range]} s from range(5000)) "
               "to 'duckdb-all.parquet' (codec snappy, row_group_size 2048, kv_metadata {a: 'b'})")


def leaves(node, path=(), d=0, r=0, top=True):
    if not top:
        path += (node["name"],)
        d += node["repetition_type"] != "REQUIRED"
        r += node["repetition_type"] == "REPEATED"
    if "children" in node:
        for child in node["children"]:
            yield from leaves(child, path, d, r, False)
    else:
        yield ".".join(path), d, r, node


class Differ:
    def __init__(self):
        self.seen, self.different = 0, 0

    def same(self, what, got, want):
        self.seen += 1
        if type(got) is not type(want) or got != want:
            self.different += 1
            print(f"{what}: {got!r}, pyarrow has {want!r}")

    def schema(self, name, footer, schema):
        got = list(leaves(footer["schema"]))
        self.same(f"{name}: columns", len(got), len(schema.names))
        for i, (path, d, r, node) in enumerate(got):
            c, at = schema.column(i), f"{name}: {path}"
            self.same(at, (path, d, r, node["name"], node["type"]), (c.path, c.max_definition_level, c.max_repetition_level, c.name, c.physical_type))
            if node.get("logical_type", {}).get("is_adjusted_to_utc", True):  # else pyarrow does not tell the other
                self.same(f"{at}: converted type", node.get("converted_type", "NONE"), c.converted_type)
            if c.physical_type == "FIXED_LEN_BYTE_ARRAY":
                self.same(f"{at}: length", node["type_length"], c.length)
            if "logical_type" in node:
                logical = json.loads(c.logical_type.to_json())
                kind = node["logical_type"]["type"].replace("INTEGER", "INT")
                self.same(f"{at}: logical type", kind, c.logical_type.type)
                for mine, theirs in {"bit_width": "bitWidth", "is_signed": "isSigned", "precision": "precision", "scale": "scale", "is_adjusted_to_utc": "isAdjustedToUTC"}.items():
                    self.same(f"{at}: {mine}", node["logical_type"].get(mine), logical.get(theirs))
                if "unit" in node["logical_type"]:
                    unit = {"milliseconds": "MILLIS", "microseconds": "MICROS", "nanoseconds": "NANOS"}[logical["timeUnit"]]
                    self.same(f"{at}: unit", node["logical_type"]["unit"], unit)
            if node.get("converted_type") == "DECIMAL":
                self.same(f"{at}: digits", (node["precision"], node["scale"]), (c.precision, c.scale))

    def value(self, what, got, want, node):
        kind = node.get("logical_type", {}).get("type") or node.get("converted_type", "")
        if isinstance(want, bytes):
            if kind == "DECIMAL":  # as pyarrow gives those that it does not decode
                want = decimal.Decimal(int.from_bytes(want, "big", signed=True)).scaleb(-node["scale"])
            elif kind == "UUID":
                want = str(uuid.UUID(bytes=want))
            elif kind in ("STRING", "UTF8"):
                want = want.decode()
            else:
                want = base64.b64encode(want).decode()
        elif isinstance(want, datetime.datetime):
            adjusted = node.get("logical_type", {}).get("is_adjusted_to_utc", True)
            self.same(f"{what}: zone", got.endswith("Z"), adjusted)
            got, want = got.rstrip("Z"), want.replace(tzinfo=None)
            if hasattr(want, "nanosecond"):
                want = want.isoformat(timespec="nanoseconds")
            else:
                got = datetime.datetime.fromisoformat(got)
        elif isinstance(want, datetime.date):
            want = want.isoformat()
        elif isinstance(want, datetime.time):
            got = datetime.time.fromisoformat(got)
        elif isinstance(want, float):
            bits = pa.float32() if node["type"] == "FLOAT" else pa.float64()
            got = pa.scalar(float(got), bits).as_py()
        elif isinstance(want, int) and not isinstance(want, bool) and kind in ("TIMESTAMP", "TIME"):
            return
        elif isinstance(want, decimal.Decimal):
            got = decimal.Decimal(got)
            self.same(f"{what}: scale", got.as_tuple().exponent, want.as_tuple().exponent)
        self.same(what, got, want)

    def column(self, at, got, c, node):
        t = c.to_dict()
        names = {"path_in_schema": "path_in_schema", "type": "physical_type", "codec": "compression", "num_values": "num_values",
                 "total_compressed_size": "total_compressed_size", "total_uncompressed_size": "total_uncompressed_size",
                 "data_page_offset": "data_page_offset", "bloom_filter_offset": "bloom_filter_offset", "bloom_filter_length": "bloom_filter_length"}
        for mine, theirs in names.items():
            want = t[theirs]
            got_value = got.get(mine)
            if mine == "codec" and got_value == "LZ4_RAW":
                got_value = "LZ4"
            self.same(f"{at}: {mine}", got_value, want)
        self.same(f"{at}: encodings", tuple(sorted(got["encodings"])), tuple(sorted(t["encodings"])))
        if t["has_dictionary_page"]:
            self.same(f"{at}: dictionary", got["dictionary_page_offset"], t["dictionary_page_offset"])
        self.same(f"{at}: offset index", "offset_index_offset" in got, c.has_offset_index)
        self.same(f"{at}: column index", "column_index_offset" in got, c.has_column_index)
        s = got.get("statistics", {})
        if t["statistics"] is None:
            return
        self.same(f"{at}: nulls", s.get("null_count"), t["statistics"]["null_count"])
        self.same(f"{at}: distinct", s.get("distinct_count"), t["statistics"]["distinct_count"])
        if t["statistics"]["has_min_max"]:
            for end in ("min", "max"):
                self.value(f"{at}: {end}", s.get(f"{end}_value", s.get(end)), t["statistics"][end], node)

    def file(self, path, text):
        name = os.path.basename(path)
        footer = json.loads(text, parse_float=decimal.Decimal)
        m = pq.read_metadata(path)
        self.same(f"{name}: head", (footer["created_by"], footer["num_rows"], len(footer["row_groups"]), footer["size"], footer["footer_length"] - 28 * ("encryption" in footer)),
                  (m.created_by, m.num_rows, m.num_row_groups, os.path.getsize(path), m.serialized_size))
        self.schema(name, footer, m.schema)
        pairs = {p["key"].encode(): p["value"].encode() for p in footer.get("key_value_metadata", [])}
        self.same(f"{name}: metadata", pairs, dict(m.metadata or {}))
        nodes = [node for _, _, _, node in leaves(footer["schema"])]
        for i, group in enumerate(footer["row_groups"]):
            g = m.row_group(i)
            self.same(f"{name}: row group {i}", (group["num_rows"], group["total_byte_size"], len(group["columns"])), (g.num_rows, g.total_byte_size, g.num_columns))
            if g.sorting_columns:
                self.same(f"{name}: order of {i}", [(s["column_idx"], s["descending"], s["nulls_first"]) for s in group["sorting_columns"]],
                          [(s.column_index, s.descending, s.nulls_first) for s in g.sorting_columns])
            for j, column in enumerate(group["columns"]):
                if "crypto_metadata" not in column:
                    self.column(f"{name}: {i}, {nodes[j]['name']}", column, g.column(j), nodes[j])


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    d = Differ()
    for path, text in zip(sys.argv[2::2], sys.argv[3::2]):
        d.file(path, open(text, encoding="utf-8").read())
    if d.different == 0 and d.seen > 1000:
        print(f"compared {d.seen} values of {len(sys.argv) // 2 - 1} files")
    else:
        sys.exit(f"{d.different} of {d.seen} differ")
