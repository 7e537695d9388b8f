package faulty

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"sync"
)

// StaleList makes listings tell of each object what the first of them told, its
// size and ETag included, from when the rule was added. New objects are listed,
// removed ones are not. One StaleList is for one rule; bodies of listings are
// held in memory.
type StaleList struct {
	mu   sync.Mutex
	seen map[string][]byte // entries by bucket and key
}

// Apply changes listings, and passes everything else on.
func (f *StaleList) Apply(x *Exchange, next Next) (*http.Response, error) {
	return rewritten(x, next, func(list []byte) []byte {
		return entries().ReplaceAllFunc(list, func(entry []byte) []byte { return f.first(x.Request.Bucket, entry) })
	})
}

// first is the entry of the same key that came first.
func (f *StaleList) first(bucket string, entry []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := bucket + "/" + string(element("Key").Find(entry))
	if was, ok := f.seen[name]; ok {
		return was
	}
	if f.seen == nil {
		f.seen = make(map[string][]byte)
	}
	f.seen[name] = bytes.Clone(entry)
	return entry
}

// DropEncoding makes the store one that ignores encoding-type=url: names in its
// listings are as they are, those with control bytes too, which XML cannot hold.
type DropEncoding struct{}

// Apply changes listings, and passes everything else on.
func (DropEncoding) Apply(x *Exchange, next Next) (*http.Response, error) {
	return rewritten(x, next, func(list []byte) []byte {
		if !element("EncodingType").Match(list) {
			return list
		}
		list = element("EncodingType").ReplaceAll(list, nil)
		for _, name := range []string{"Key", "Prefix", "Delimiter", "StartAfter", "Marker", "NextMarker"} {
			list = element(name).ReplaceAllFunc(list, func(found []byte) []byte { return decoded(name, found) })
		}
		return list
	})
}

// decoded is an element whose text is not percent-encoded any more.
func decoded(name string, found []byte) []byte {
	plain, err := url.QueryUnescape(string(element(name).FindSubmatch(found)[1]))
	if err != nil {
		return found
	}
	var b bytes.Buffer
	b.WriteString("<" + name + ">")
	for _, c := range []byte(plain) {
		if c < ' ' {
			b.WriteByte(c) // as those stores do
			continue
		}
		_ = escape(&b, c) // a Buffer takes all
	}
	b.WriteString("</" + name + ">")
	return b.Bytes()
}

// escape writes a byte of text; those of a longer character stay as they are.
func escape(b *bytes.Buffer, c byte) error {
	if c >= 0x80 {
		return b.WriteByte(c)
	}
	return xml.EscapeText(b, []byte{c})
}

// rewritten passes what a listing answers through a function.
func rewritten(x *Exchange, next Next, change func([]byte) []byte) (*http.Response, error) {
	resp, err := next()
	if err != nil || x.Request.Op != "ListObjectsV2" && x.Request.Op != "ListObjects" || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	list, err := io.ReadAll(resp.Body)
	if err != nil {
		_ = resp.Body.Close() // in favour of the other error
		return nil, err
	}
	list = change(list)
	resp.Body = body{resp.Body, bytes.NewReader(list)}
	setLength(resp, int64(len(list)))
	return resp, nil
}

func entries() *regexp.Regexp { return regexp.MustCompile(`(?s)<Contents>.*?</Contents>`) }

// element matches an element that has text alone, which is its group.
func element(name string) *regexp.Regexp {
	return regexp.MustCompile("<" + name + ">([^<]*)</" + name + ">")
}
