package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"strings"
)

// lines reports whether files of the format are lines of text, which engines read
// compressed or not as the name says.
func lines(format string) bool { return format == "csv" || format == "text" || format == "json" }

// SameCodec reports whether files of the format are checked alike under both base
// names: a file of text under a name that tells of compression is looked at for that.
func SameCodec(format, name, other string) bool {
	return !lines(format) || codecOf(name) == codecOf(other)
}

// checkText is the check of a file of text: of a name that says how the file is
// compressed, the magic of that; else JSON is looked at, and anything is text.
func checkText(format, name string) check {
	if codec := codecOf(name); codec != "" {
		return func(r io.ReaderAt, size int64) error { return checkCompressed(codec, r, size) }
	}
	if format == "json" {
		return checkJSON
	}
	return func(io.ReaderAt, int64) error { return nil }
}

// codecOf is what a name's last extension says of the compression; "" for none. It
// names those of Hadoop, which engines go by, that have a beginning to know them by.
func codecOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".gz":
		return "gzip"
	case ".bz2":
		return "bzip2"
	case ".zst":
		return "zstd"
	case ".xz":
		return "xz"
	case ".snappy":
		return "snappy"
	case ".lz4":
		return "lz4"
	case ".deflate":
		return "zlib"
	}
	return ""
}

// checkCompressed looks at the first bytes. An empty file has no rows, compressed or
// not.
func checkCompressed(codec string, r io.ReaderAt, size int64) error {
	if size == 0 {
		return nil
	}
	var buf [16]byte
	head := buf[:min(size, int64(len(buf)))]
	if err := readFull(r, head, 0); err != nil {
		return err
	}
	for _, magic := range magics(codec) {
		if bytes.HasPrefix(head, []byte(magic)) {
			return nil
		}
	}
	switch codec {
	case "snappy", "lz4":
		if hadoopBlock(head, size) {
			return nil
		}
	case "zlib": // method 8, and a header that 31 divides
		if len(head) > 1 && head[0]&0x0f == 8 && binary.BigEndian.Uint16(head)%31 == 0 {
			return nil
		}
	case "zstd":
		if skippable(head) {
			return nil
		}
	}
	return flawf("byte 0: it begins with %q, which is not how %s begins (%s), but its name says that it does: compress it, or name it without the extension",
		head[:min(len(head), 8)], codec, begins(codec))
}

// magics are the beginnings that files of a codec may have.
func magics(codec string) []string {
	switch codec {
	case "gzip":
		return []string{"\x1f\x8b\x08"}
	case "bzip2":
		return []string{"BZh"}
	case "zstd":
		return []string{"\x28\xb5\x2f\xfd"}
	case "xz":
		return []string{"\xfd7zXZ\x00"}
	case "snappy": // framed; as snappy-java writes it
		return []string{"\xff\x06\x00\x00sNaPpY", "\x82SNAPPY\x00"}
	case "lz4": // framed; as it was before
		return []string{"\x04\x22\x4d\x18", "\x02\x21\x4c\x18"}
	}
	return nil
}

// begins says for people what a file of the codec begins with.
func begins(codec string) string {
	var all []string
	for _, magic := range magics(codec) {
		all = append(all, fmt.Sprintf("% x", magic))
	}
	switch codec {
	case "snappy", "lz4":
		all = append(all, "Hadoop's blocks")
	case "zlib":
		all = append(all, "78 and a check of it")
	}
	return strings.Join(all, ", or ")
}

// skippable: a frame that holds no data, which zstd files may begin with.
func skippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

// hadoopBlock reports whether head may begin a file of Hadoop's SnappyCodec or
// Lz4Codec, which have no magic: the length of a block, and of its first compressed
// chunk, which is in the file. Without any rows it is one length, 0.
func hadoopBlock(head []byte, size int64) bool {
	if len(head) >= 4 && binary.BigEndian.Uint32(head) == 0 {
		return size == 4 || size == 8 && binary.BigEndian.Uint32(head[4:]) == 0
	}
	if len(head) < 9 {
		return false
	}
	block, chunk := int64(binary.BigEndian.Uint32(head)), int64(binary.BigEndian.Uint32(head[4:]))
	return chunk > 0 && chunk <= size-8 && chunk <= block+block/6+32
}
