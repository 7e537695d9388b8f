package format

import (
	"bytes"
	"io"
	"unicode/utf8"
)

const (
	avroMagic = "Obj\x01"
	avroSync  = 16
	// avroMin is magic, the end of no metadata, and the sync marker.
	avroMin = len(avroMagic) + 1 + avroSync
	// avroHeader is how long a header may be: no schema of this size is known, and
	// what is longer is no header.
	avroHeader = 64 << 20
)

// checkAvro wants the magic, a header that parses, with a schema that is JSON, and its
// sync marker at the end of the file too. Blocks are not looked for.
func checkAvro(r io.ReaderAt, size int64) error {
	if size < int64(avroMin) {
		return flawf("%d bytes, the shortest has %d", size, avroMin)
	}
	c := head(r, size)
	var start [len(avroMagic)]byte
	if c.bytes(start[:]); c.err != nil {
		return c.err
	}
	if string(start[:]) != avroMagic {
		return errBegins(start[:], avroMagic)
	}
	c.section("the header", c.off, min(size, avroHeader))
	avroMetadata(c)
	var sync, last [avroSync]byte
	if c.bytes(sync[:]); c.err != nil {
		return c.err
	}
	if err := readFull(r, last[:], size-avroSync); err != nil {
		return err
	}
	if !bytes.Equal(sync[:], last[:]) {
		return flawf("byte %d: it does not end in the sync marker that its header has at byte %d: cut, or its writer has not finished",
			size-avroSync, c.off-avroSync)
	}
	return nil
}

// avroMetadata reads the metadata, and looks at what must be there.
func avroMetadata(c *cursor) {
	schema := false
	avroPairs(c, func(key string) {
		switch key {
		case "avro.schema":
			avroSchema(c)
			schema = true
		case "avro.codec":
			avroCodec(c)
		default:
			c.skip(avroLength(c))
		}
	})
	if !schema {
		c.failf("the header has no schema (avro.schema) up to byte %d: damaged, write it again", c.off)
	}
}

// avroPairs reads a map of strings to bytes, the values by on: blocks of a count and as
// many pairs, the count negative where the block's length in bytes follows, and 0 the end.
func avroPairs(c *cursor, on func(key string)) {
	for c.err == nil {
		n := c.varint()
		if n == 0 {
			return
		}
		if n < 0 {
			n = -n // the least number stays negative: no pairs
			c.varint()
		}
		for ; n > 0 && c.err == nil; n-- {
			on(avroKey(c))
		}
	}
}

// avroLength reads a length; one that is negative is longer than what is left.
func avroLength(c *cursor) uint64 { return uint64(c.varint()) }

// avroKey reads a key; the end of one of more than 1,024 bytes, which none is, is left out.
func avroKey(c *cursor) string {
	var short [1024]byte
	n := avroLength(c)
	if n > uint64(c.end-c.off) {
		c.skip(n) // which says so
		return ""
	}
	key := short[:min(n, uint64(len(short)))]
	c.bytes(key)
	c.skip(n - uint64(len(key)))
	return string(key)
}

// avroCodec wants the name of a codec, whichever.
func avroCodec(c *cursor) {
	at := c.off
	for n := avroLength(c); n > 0 && c.err == nil; n-- {
		if b := c.byte(); !wordByte(b) && b != '_' {
			c.failf("the codec at byte %d is no name: damaged, write it again", at)
		}
	}
}

// avroSchema wants the schema to be JSON, and one of Avro's.
func avroSchema(c *cursor) {
	n := avroLength(c)
	at := c.off
	if c.skip(n); c.err != nil {
		return
	}
	end := c.end
	c.section("the schema", at, c.off)
	var text []byte
	var scan jsonScan
	for c.err == nil && c.off < c.end {
		b := c.byte()
		if scan.push(b); scan.reason != "" {
			c.failf("byte %d: the schema is not JSON: %s", c.off-1, scan.reason)
		}
		if n <= avroSchemaBytes {
			text = append(text, b)
		}
	}
	if !scan.whole() {
		c.failf("byte %d: the schema is not JSON: it ends in the middle of a value", c.off)
	}
	if text != nil && c.err == nil {
		if !utf8.Valid(text) {
			c.failf("the schema at byte %d is not UTF-8: damaged, write it again", at)
		} else if flaw := schemaFlaw(text); flaw != "" {
			c.failf("the schema at byte %d: %s: damaged, write it again", at, flaw)
		}
	}
	c.section("the header", c.off, end)
}
