"""The schema in the header of an Avro file, read and put in the place of another: values
of logical types are written and read as what they are physically, so that no date type of
Python bounds them."""
import json


def raw(t):
    """raw is a schema without its logical types."""
    if isinstance(t, list):
        return [raw(x) for x in t]
    if isinstance(t, dict):
        return {k: raw(v) if k in ("type", "items", "values", "fields") else v for k, v in t.items() if k != "logicalType"}
    return t


def long(n):
    n, out = n << 1 ^ n >> 63, bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def read_long(data, at):
    n = shift = 0
    while True:
        c, at = data[at], at + 1
        n, shift = n | (c & 127) << shift, shift + 7
        if c < 128:
            return n >> 1 ^ -(n & 1), at


def header(data):
    """header is the metadata of a file, and where its blocks' marker begins."""
    at, meta = 4, []
    while True:
        n, at = read_long(data, at)
        if n == 0:
            return meta, at
        for _ in range(n):
            pair = []
            for _ in range(2):
                size, at = read_long(data, at)
                pair.append(data[at:at + size])
                at += size
            meta.append(tuple(pair))


def schema_of(data):
    return json.loads(dict(header(data)[0])[b"avro.schema"])


def with_meta(data, **new):
    """with_meta is a file with other values of avro.schema, avro.codec."""
    meta, at = header(data)
    out = data[:4] + long(len(meta))
    for k, v in meta:
        v = new.get(k.decode().removeprefix("avro."), v)
        out += long(len(k)) + k + long(len(v)) + v
    return out + b"\x00" + data[at:]


def with_blocks(data, change):
    """with_blocks is a file whose blocks' data is changed: compressed."""
    _, at = header(data)
    at += 16
    out = data[:at]
    while at < len(data):
        n, at = read_long(data, at)
        size, at = read_long(data, at)
        block = change(data[at:at + size])
        out += long(n) + long(len(block)) + block + data[at + size:at + size + 16]
        at += size + 16
    return out
