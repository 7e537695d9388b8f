package tools_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// kinds are the operations of the table's column, in its order: those that change the
// store, and what an overwrite asks. Reads and listings depend on what is cached.
func kinds() []struct{ op, shown string } {
	return []struct{ op, shown string }{
		{"PutObject", "PUT"},
		{"CopyObject", "COPY"},
		{"DeleteObject", "DELETE"},
		{"DeleteObjects", "DELETE of many"},
		{"CreateMultipartUpload", "upload"},
		{"UploadPart", "part"},
		{"UploadPartCopy", "part copied"},
		{"CompleteMultipartUpload", "upload completed"},
		{"AbortMultipartUpload", "upload aborted"},
		{"HeadObject", "HEAD"},
	}
}

// sent are the requests of one run, by operation and key below the table.
type sent struct {
	counts map[string]map[string]int
	keys   map[string]struct{} // of those that change the store
}

// changes are the requests of kinds; keys lie below prefix.
func changes(log []faulty.Request, prefix string) sent {
	s := sent{counts: map[string]map[string]int{}, keys: map[string]struct{}{}}
	for _, r := range log {
		if !slices.ContainsFunc(kinds(), func(k struct{ op, shown string }) bool { return k.op == r.Op }) {
			continue
		}
		key := strings.TrimPrefix(r.Key, prefix)
		if s.counts[r.Op] == nil {
			s.counts[r.Op] = map[string]int{}
		}
		s.counts[r.Op][key]++
		if r.Op != "HeadObject" && r.Op != "DeleteObjects" && !strings.HasSuffix(key, "/") {
			s.keys[key] = struct{}{}
		}
	}
	return s
}

// String is the table's cell.
func (s sent) String() string {
	var cell []string
	for _, k := range kinds() {
		n := 0
		for _, of := range s.counts[k.op] {
			n += of
		}
		if n > 0 {
			cell = append(cell, fmt.Sprintf("%s %d", k.shown, n))
		}
	}
	if cell == nil {
		return "–"
	}
	return strings.Join(cell, ", ")
}

// beyond are the requests that a store need not get: all but a PUT for each version
// of a file, and a HEAD where there was one.
func (s sent) beyond(v versions) (list []string) {
	puts, heads := v.puts()
	for _, k := range kinds() {
		for _, key := range slices.Sorted(maps.Keys(s.counts[k.op])) {
			n, due := s.counts[k.op][key], 0
			switch k.op {
			case "PutObject":
				due = puts[key]
			case "HeadObject":
				due = heads[key]
			}
			if n > due {
				list = append(list, fmt.Sprintf("%s %d of %q, want %d", k.shown, n, key, due))
			}
		}
	}
	return list
}

func TestWhatAStoreNeedNotGet(t *testing.T) {
	file := func(text string) node { return node{kind: regular, bytes: text} }
	v := versions{any: func(string) bool { return false }, trees: []map[string]node{
		{"old": file("1"), "gone": file("1")},
		{"old": file("2"), "gone": file("1"), "new": file("1")},
		{"old": file("2"), "new": file("2")},
	}}
	for _, c := range []struct {
		requests string
		shown    string
		beyond   int
	}{
		{"", "–", 0},
		{"HeadObject old,PutObject old,PutObject new,HeadObject new,PutObject new,GetObject old,ListObjectsV2 x", "PUT 3, HEAD 2", 0},
		{"PutObject old,PutObject old", "PUT 2", 1},
		{"PutObject temp,CopyObject new,DeleteObject temp", "PUT 1, COPY 1, DELETE 1", 3},
		{"DeleteObject gone,HeadObject gone", "DELETE 1, HEAD 1", 2},
		{"CreateMultipartUpload new,UploadPart new,CompleteMultipartUpload new", "upload 1, part 1, upload completed 1", 3},
	} {
		var log []faulty.Request
		for r := range strings.SplitSeq(c.requests, ",") {
			op, key, _ := strings.Cut(r, " ")
			log = append(log, faulty.Request{Op: op, Key: "p/" + key})
		}
		s := changes(log, "p/")
		if got := s.String(); got != c.shown {
			t.Errorf("%s: shown %q, want %q", c.requests, got, c.shown)
		}
		if got := s.beyond(v); len(got) != c.beyond {
			t.Errorf("%s: %q need not be, want %d", c.requests, got, c.beyond)
		}
	}
}
