"""Writes the files of this folder: python make.py (pyarrow, duckdb, polars, fastparquet,
pandas, cramjam, zstandard). Small: a few rows each, of several types."""
import bz2, datetime, gzip, json, lzma, os, random, struct, zlib

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

os.chdir(os.path.dirname(os.path.abspath(__file__)))
table = pa.table({
    "id": pa.array(range(40), pa.int64()),
    "name": pa.array([None if i % 7 == 0 else f"n{i % 5}" for i in range(40)]),
    "day": pa.array([datetime.date(2026, 1, 1 + i % 20) for i in range(40)]),
    "tags": pa.array([[f"t{i % 3}"] * (i % 3) for i in range(40)], pa.list_(pa.string())),
})
flat = table.drop(["tags"])


def parquet():
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        pq.write_table(table, f"arrow-{codec}.parquet", compression=codec)
    pq.write_table(table, "arrow-1.0.parquet", version="1.0", use_dictionary=False)
    pq.write_table(table, "arrow-pages2.parquet", data_page_version="2.0", row_group_size=16,
                   write_page_index=True)
    pq.write_table(table.slice(0, 0), "arrow-norows.parquet")
    pq.write_table(pa.table({}), "arrow-nocolumns.parquet")
    import duckdb
    duckdb.sql("copy (select range id, 'n' || range as name from range(40)) to 'duckdb.parquet' (codec zstd)")
    duckdb.sql("copy (select 1 id where false) to 'duckdb-norows.parquet'")
    import polars
    polars.from_arrow(table).write_parquet("polars.parquet")
    import fastparquet
    fastparquet.write("fastparquet.parquet", flat.drop(["day"]).to_pandas(), compression="SNAPPY")
    encrypted()


def encrypted():
    import pyarrow.parquet.encryption as pe

    class Kms(pe.KmsClient):
        def __init__(self, config):
            super().__init__()

        def wrap_key(self, key_bytes, master_key_identifier):
            return key_bytes.hex()

        def unwrap_key(self, wrapped_key, master_key_identifier):
            return bytes.fromhex(wrapped_key)

    for name, plain in (("encrypted", False), ("encrypted-columns", True)):
        config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["name"]}, plaintext_footer=plain)
        props = pe.CryptoFactory(Kms).file_encryption_properties(pe.KmsConnectionConfig(), config)
        with pq.ParquetWriter(f"arrow-{name}.parquet", flat.schema, encryption_properties=props) as w:
            w.write_table(flat)


def orcs():
    for codec in ("uncompressed", "snappy", "zlib", "lz4", "zstd"):
        orc.write_table(table, f"arrow-{codec}.orc", compression=codec)
    orc.write_table(table, "arrow-0.11.orc", file_version="0.11")
    orc.write_table(table.slice(0, 0), "arrow-norows.orc")


def long(n):
    n, out = (n << 1) ^ (n >> 63), b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def avro(codec, blocks, sized=False):
    """An object container file, as the Avro specification has it."""
    sync = bytes(random.Random(codec).randbytes(16))
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
    text = lambda b: long(len(b)) + b
    pairs = text(b"avro.schema") + text(json.dumps(schema).encode()) + text(b"avro.codec") + text(codec.encode())
    count = long(-2) + long(len(pairs)) if sized else long(2)
    out = b"Obj\x01" + count + pairs + long(0) + sync
    for b in range(blocks):
        rows = b"".join(long(i) + text(b"n%d" % i) for i in range(20))
        if codec == "deflate":
            rows = zlib.compress(rows)[2:-4]
        out += long(20) + long(len(rows)) + rows + sync
    return out


def avros():
    for name, data in {"null": avro("null", 2), "deflate": avro("deflate", 3), "sized": avro("null", 1, True), "norows": avro("null", 0)}.items():
        open(f"{name}.avro", "wb").write(data)
    import polars
    polars.from_arrow(flat).write_avro("polars.avro", compression="snappy")


def texts():
    import cramjam, zstandard
    rows = b"".join(json.dumps({"id": i, "name": f"n{i}"}).encode() + b"\n" for i in range(20))
    raw = bytes(cramjam.snappy.compress_raw(rows))
    files = {
        "rows.json": rows, "rows.json.gz": gzip.compress(rows, mtime=0), "rows.json.bz2": bz2.compress(rows),
        "rows.json.xz": lzma.compress(rows), "rows.json.deflate": zlib.compress(rows),
        "rows.json.zst": zstandard.ZstdCompressor().compress(rows),
        "rows.json.lz4": bytes(cramjam.lz4.compress(rows)),
        "framed.json.snappy": bytes(cramjam.snappy.compress(rows)),
        "hadoop.json.snappy": struct.pack(">II", len(rows), len(raw)) + raw,
    }
    for name, data in files.items():
        open(name, "wb").write(data)


parquet()
orcs()
avros()
texts()
