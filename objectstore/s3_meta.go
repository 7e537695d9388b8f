package objectstore

import (
	"encoding/base64"
	"mime"
	"strings"
)

// encodeMeta is user metadata as headers carry it: keys in lower case, and a
// value that is not plain as an encoded word of RFC 2047, as S3 itself answers
// such values. decodeMeta undoes it.
func encodeMeta(meta map[string]string) map[string]string {
	encoded := make(map[string]string, len(meta))
	for k, v := range meta {
		if !plain(v) {
			v = "=?utf-8?b?" + base64.StdEncoding.EncodeToString([]byte(v)) + "?="
		}
		encoded[strings.ToLower(k)] = v
	}
	return encoded
}

// plain values come back as they were sent: printable ASCII that does not begin
// or end with a space and could not be taken for an encoded word.
func plain(v string) bool {
	if strings.TrimSpace(v) != v || strings.Contains(v, "=?") {
		return false
	}
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return false
		}
	}
	return true
}

// decodeMeta is user metadata of headers as it was given. What can not be
// decoded stays as it came.
func decodeMeta(meta map[string]string) map[string]string {
	decoded := make(map[string]string, len(meta))
	for k, v := range meta {
		if strings.Contains(v, "=?") {
			if plain, err := new(mime.WordDecoder).DecodeHeader(v); err == nil {
				v = plain
			}
		}
		decoded[strings.ToLower(k)] = v
	}
	return decoded
}
