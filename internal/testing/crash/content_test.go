package crash_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// content is n bytes that no other name has, in any block of them.
func content(name string, n int) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash takes all
	x := h.Sum64() | 1
	raw := make([]byte, (n+7)/8*8)
	for i := 0; i < len(raw); i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(raw[i:], x)
	}
	return raw[:n]
}

// brief tells contents apart in a message.
func brief(raw []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash takes all
	return fmt.Sprintf("%d bytes (%x)", len(raw), h.Sum64()>>40)
}

// tree is files by path.
type tree map[string][]byte

func (t tree) equal(other tree) bool {
	if len(t) != len(other) {
		return false
	}
	for name, raw := range t {
		if got, there := other[name]; !there || string(got) != string(raw) {
			return false
		}
	}
	return true
}

// String says what is where.
func (t tree) String() string {
	text := ""
	for _, name := range sortedKeys(t) {
		text += fmt.Sprintf("%s: %s; ", name, brief(t[name]))
	}
	return "{" + text + "}"
}
