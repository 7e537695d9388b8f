package renderfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
)

// avroBombs are Avro files whose blocks claim what is not there, or hold next to nothing
// that is much.
func avroBombs(tb testing.TB) (all []Bomb) {
	tb.Helper()
	add := func(name string, whole bool, schema any, codec string, block ...[]byte) {
		all = append(all, Bomb{Name: name + ".avro", Data: avroFile(tb, schema, codec, block...), Whole: whole})
	}
	add("nulls", true, avroRecord("null"), "null", avroBlock(math.MaxInt32, nil))
	add("nulls-2-62", false, avroRecord("null"), "null", avroBlock(1<<62, nil))
	add("rows-negative", false, avroRecord("long"), "null", avroBlock(-5, []byte{2}))
	add("block-claims", false, avroRecord("long"), "null", zigzag(1), zigzag(1<<50), []byte{2})
	add("bytes-claim", false, avroRecord("bytes"), "null", avroBlock(1, append(zigzag(1<<40), 1)))
	add("bytes-negative", false, avroRecord("bytes"), "null", avroBlock(1, zigzag(-1)))
	list := func(items any) any { return avroRecord(map[string]any{"type": "array", "items": items}) }
	add("array-of-nulls", false, list("null"), "null", avroBlock(1, append(zigzag(1<<40), 0)))
	add("array-claims", false, list("long"), "null", avroBlock(1, append(zigzag(1<<40), 2)))
	add("array-minimum", false, list("null"), "null", avroBlock(1, append(append(zigzag(math.MinInt64), zigzag(0)...), 0)))
	add("map-claims", false, avroRecord(map[string]any{"type": "map", "values": "null"}), "null", avroBlock(1, append(zigzag(1<<40), 0)))
	z := zeros(tb, gib/2, byZstd)
	add("zstd", false, avroRecord("bytes"), "zstandard", avroBlock(1, z))
	d := zeros(tb, gib/4, func(w io.Writer) io.WriteCloser {
		f, err := flate.NewWriter(w, 1)
		must(tb, err)
		return f
	})
	add("deflate", false, avroRecord("bytes"), "deflate", avroBlock(1, d))
	add("snappy-claims", false, avroRecord("bytes"), "snappy", avroBlock(1, append(varint(math.MaxUint32), 0, 0, 0, 0)))
	add("codec-unknown", false, avroRecord("long"), "lzma9", avroBlock(1, []byte{2}))
	return all
}

// avroSchemaBombs are Avro files whose schema is much.
func avroSchemaBombs(tb testing.TB) (all []Bomb) {
	tb.Helper()
	add := func(name string, schema any, block ...[]byte) {
		all = append(all, Bomb{Name: name + ".avro", Data: avroFile(tb, schema, "null", block...)})
	}
	add("schema-deep", strings.Repeat(`{"type":"array","items":`, 100_000)+`"int"`+strings.Repeat("}", 100_000))
	add("union-deep", strings.Repeat(`[`, 100_000)+`"int"`+strings.Repeat("]", 100_000))
	// A tree that its values nest in themselves, a byte a level.
	add("value-deep", map[string]any{"type": "record", "name": "r", "fields": []any{
		map[string]any{"name": "next", "type": []any{"null", "r"}},
	}}, avroBlock(1, bytes.Repeat([]byte{2}, 1<<20)))
	add("fixed-of-8-eib", avroRecord(map[string]any{"type": "fixed", "name": "x", "size": math.MaxInt64}), avroBlock(1, nil))
	// Each type is twice the one before it.
	t := any("int")
	for i := range 40 {
		t = map[string]any{"type": "record", "name": fmt.Sprint("d", i), "fields": []any{
			map[string]any{"name": "a", "type": t}, map[string]any{"name": "b", "type": after(t)},
		}}
	}
	add("doubling", avroRecord(t), avroBlock(1, make([]byte, 1<<16)))
	return all
}

// after is how a type is named where it was defined before.
func after(t any) any {
	if m, ok := t.(map[string]any); ok {
		return m["name"]
	}
	return t
}

// avroFile is a file of one block, with a schema (a string is one as it is written).
func avroFile(tb testing.TB, schema any, codec string, block ...[]byte) []byte {
	tb.Helper()
	raw, err := json.Marshal(schema)
	must(tb, err)
	if s, ok := schema.(string); ok {
		raw = []byte(s)
	}
	data := append([]byte("Obj\x01"), zigzag(2)...)
	for _, s := range []string{"avro.schema", string(raw), "avro.codec", codec} {
		data = append(append(data, zigzag(int64(len(s)))...), s...)
	}
	const marker = "0123456789abcdef"
	data = append(append(data, 0), marker...)
	return append(append(data, bytes.Join(block, nil)...), marker...)
}

// avroRecord is a schema of one field.
func avroRecord(t any) any {
	return map[string]any{"type": "record", "name": "r", "fields": []any{map[string]any{"name": "f", "type": t}}}
}

func avroBlock(rows int64, body []byte) []byte {
	return append(append(zigzag(rows), zigzag(int64(len(body)))...), body...)
}
