package objectstore

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
)

// lists answers listings from a set of keys, as a store does.
type lists struct {
	keys    []string // in the store's order
	order   func(a, b string) int
	deaf    bool // to StartAfter
	inside  bool // a StartAfter within a directory leaves that directory out
	refuses bool // StartAfter is an error
	short   int  // pages hold fewer keys, by chance; 0: no
	fail    func(n int64, q url.Values) *http.Response

	requests atomic.Int64
	empty    atomic.Int64
	known    sync.Map // lines by prefix and delimiter
}

func byBytes(a, b string) int { return cmp.Compare(a, b) }

// byUnits is the order of stores that compare as Java does.
func byUnits(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func byHash(a, b string) int {
	hash := func(s string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(s))
		return h.Sum64()
	}
	return cmp.Compare(hash(a), hash(b))
}

func newLists(order func(a, b string) int, keys []string) *lists {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, order)
	return &lists{keys: slices.Compact(keys), order: order}
}

// lines are what a listing has, in the store's order.
func (l *lists) lines(prefix string, delimiter bool) []string {
	type of struct {
		prefix    string
		delimiter bool
	}
	if all, found := l.known.Load(of{prefix, delimiter}); found {
		return all.([]string) //nolint:forcetypeassert // stored below
	}
	var all []string
	seen := map[string]bool{}
	for _, key := range l.keys {
		rest, ok := strings.CutPrefix(key, prefix)
		if i := strings.IndexByte(rest, '/'); delimiter && i >= 0 {
			key = prefix + rest[:i+1]
		}
		if ok && !seen[key] {
			seen[key] = true
			all = append(all, key)
		}
	}
	l.known.Store(of{prefix, delimiter}, all)
	return all
}

func (l *lists) answer(_ int, req *http.Request) (*http.Response, error) {
	q, n := req.URL.Query(), l.requests.Add(1)
	if l.fail != nil {
		if resp := l.fail(n, q); resp != nil {
			return resp, nil
		}
	}
	prefix, after := q.Get("prefix"), q.Get("start-after")
	if after != "" && l.refuses {
		return replyError(400, "InvalidArgument")
	}
	all := l.lines(prefix, q.Has("delimiter"))
	from := 0
	switch token := q.Get("continuation-token"); {
	case token != "":
		from, _ = strconv.Atoi(token)
	case after != "" && !l.deaf:
		from = len(all)
		for i, line := range all {
			within := strings.HasSuffix(line, "/") && strings.HasPrefix(after, line) && after != line
			if l.order(line, after) > 0 || within && !l.inside {
				from = i
				break
			}
		}
	}
	size, _ := strconv.Atoi(q.Get("max-keys"))
	if l.short > 0 {
		size = max(1, size-rand.IntN(l.short))
	}
	to, next := min(from+size, len(all)), ""
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	if from == to {
		l.empty.Add(1)
	}
	resp, err := reply(200, page(next, all[from:to]...))
	return resp, err
}

// listing runs one of d/ over the store, and returns its keys.
func (l *lists) listing(t *testing.T, size int, opts ListOptions) ([]string, error) {
	t.Helper()
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, l.answer)
	f.listPage = int32(size)
	var keys []string
	for e, err := range f.List(t.Context(), Location{Bucket: "bucket", Key: "d/"}, opts) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, e.Key)
	}
	return keys, nil
}

// shapes are names as programs give them.
func shapes() map[string]func(i int) string {
	return map[string]func(i int) string{
		"numbered":     func(i int) string { return fmt.Sprintf("part-%06d.parquet", i) },
		"not padded":   func(i int) string { return fmt.Sprintf("f%d", i) },
		"hashes":       func(i int) string { return fmt.Sprintf("%016x", uint64(i+1)*0x9e3779b97f4a7c15) },
		"random":       func(int) string { return randomName() },
		"days":         func(i int) string { return fmt.Sprintf("dt=%04d-%02d-%02d/x", 1900+i/372, 1+i/31%12, 1+i%31) },
		"hours":        func(i int) string { return fmt.Sprintf("dt=2026-01-%02d/h=%02d/%d", 1+i/5000, i%24, i) },
		"two clusters": func(i int) string { return fmt.Sprintf("%c%04d", "az"[i%2], i) },
		"a long tail":  func(i int) string { return strings.Repeat("m", i/100) + fmt.Sprint(i%100) },
		"other script": func(i int) string { return fmt.Sprintf("день-%05d é", i) },
		"of no script": func(i int) string { return string(rune(0x4e00+i%20000)) + fmt.Sprint(i/20000) },
		"beyond":       func(i int) string { return string(rune(0xff00+i%0x200)) + string(rune(0x10000+i)) },
		"upper":        func(i int) string { return fmt.Sprintf("%c%05d", "Zz"[i%2], i) },
	}
}

// randomName has any bytes that a key may have.
func randomName() string {
	var b strings.Builder
	for range 1 + rand.IntN(8) {
		switch rand.IntN(8) {
		case 0:
			b.WriteRune(rune(1 + rand.IntN(31)))
		case 1:
			b.WriteRune(rune(0x80 + rand.IntN(0x700)))
		case 2:
			b.WriteRune(rune(0x10000 + rand.IntN(0xffff)))
		case 3:
			b.WriteByte('/')
		default:
			b.WriteByte(byte('!' + rand.IntN(94)))
		}
	}
	return b.String()
}

// TestCase68RangesListEachKeyOnce, whatever the names, the pages and the store are.
func TestCase68RangesListEachKeyOnce(t *testing.T) {
	stores := map[string]func(l *lists){
		"plain":           func(*lists) {},
		"short pages":     func(l *lists) { l.short = 20 },
		"deaf":            func(l *lists) { l.deaf = true },
		"inside":          func(l *lists) { l.inside = true },
		"no start-after":  func(l *lists) { l.refuses = true },
		"units":           func(l *lists) { l.order = byUnits },
		"no order at all": func(l *lists) { l.order, l.deaf = byHash, true },
	}
	for shape, name := range shapes() {
		for store, change := range stores {
			t.Run(shape+", "+store, func(t *testing.T) {
				t.Parallel()
				for _, n := range []int{0, 30, 700, 2500} {
					keys := make([]string, n)
					for i := range keys {
						keys[i] = "d/" + name(i)
					}
					l := newLists(byBytes, keys)
					change(l)
					slices.SortFunc(l.keys, l.order)
					for _, opts := range []ListOptions{{}, {Delimiter: true}, {Delimiter: true, StartAfter: "d/m"}, {Delimiter: true, Limit: 40}} {
						if opts.Limit > 0 && l.short > 0 || opts.StartAfter != "" && l.refuses {
							continue
						}
						l.wantEachOnce(t, opts)
					}
				}
			})
		}
	}
}

func (l *lists) wantEachOnce(t *testing.T, opts ListOptions) {
	t.Helper()
	const size = 40
	got, err := l.listing(t, size, opts)
	if err != nil {
		t.Errorf("%d keys, %+v: %v", len(l.keys), opts, err)
	}
	want := l.lines("d/", opts.Delimiter)
	if opts.StartAfter != "" {
		want = slices.DeleteFunc(slices.Clone(want), func(key string) bool { return key <= opts.StartAfter })
	}
	if opts.Limit > 0 {
		want = want[:min(len(want), opts.Limit)]
	}
	sorted := slices.Sorted(slices.Values(got))
	if !slices.Equal(sorted, slices.Sorted(slices.Values(want))) {
		t.Errorf("%d keys, %+v: %d listed, %d different ones; want %d", len(l.keys), opts, len(got), len(slices.Compact(sorted)), len(want))
	}
}

// TestCase68RangesCostFewRequests: one more than there are pages, and one for each ten
// of them, as long as a listing is no large one.
func TestCase68RangesCostFewRequests(t *testing.T) {
	const size = 50
	for shape, name := range shapes() {
		for _, n := range []int{1, size, 2*size + 1, 5 * size, 10 * size, 15*size + 7, 20 * size, 100 * size} {
			if shape == "hours" || shape == "random" {
				continue // few names at the top; not known how many
			}
			keys := make([]string, n)
			for i := range keys {
				keys[i] = "d/" + name(i)
			}
			l := newLists(byBytes, keys)
			got, err := l.listing(t, size, ListOptions{Delimiter: true})
			if err != nil || len(got) != n || !slices.IsSorted(got) {
				t.Errorf("%s: %d of %d keys, %v", shape, len(got), n, err)
			}
			pages := max(1, (n+size-1)/size)
			most := pages + 1 + pages/10
			if pages > manyPages {
				most = pages + maxRanges + pages/5
			}
			if asked := int(l.requests.Load()); asked > most {
				t.Errorf("%s: %d requests for %d pages, want at most %d", shape, asked, pages, most)
			}
		}
	}
}

// Names of the usual kinds are split so well that hardly a range is empty, and that the
// pages come many at once.
func TestListSplitsWell(t *testing.T) {
	const size, pages, pageTime = 100, 120, 30 * time.Millisecond
	for _, shape := range []string{"numbered", "hashes", "not padded"} {
		synctest.Test(t, func(t *testing.T) {
			keys := make([]string, size*pages)
			for i := range keys {
				keys[i] = "d/" + shapes()[shape](i)
			}
			l := newLists(byBytes, keys)
			l.fail = func(int64, url.Values) *http.Response {
				<-time.After(pageTime)
				return nil
			}
			begin := time.Now()
			if _, err := l.listing(t, size, ListOptions{Delimiter: true}); err != nil {
				t.Fatal(err)
			}
			rounds := int(time.Since(begin) / pageTime)
			t.Logf("%s: %d pages by %d requests, %d of them empty, in the time of %d", shape, pages, l.requests.Load(), l.empty.Load(), rounds)
			if l.empty.Load() > maxRanges || rounds > pages/3 {
				t.Errorf("%s: %d requests, %d of them empty, in the time of %d", shape, l.requests.Load(), l.empty.Load(), rounds)
			}
		})
	}
}

// A range that fails is the listing's error: it is never short.
func TestListFailsWithItsRanges(t *testing.T) {
	const size = 50
	keys := make([]string, 60*size)
	for i := range keys {
		keys[i] = fmt.Sprintf("d/%05d", i)
	}
	for _, at := range []int64{1, 2, 5, 17, 30, 55} {
		l := newLists(byBytes, keys)
		l.fail = func(n int64, _ url.Values) *http.Response {
			if n < at {
				return nil
			}
			resp, _ := replyError(403, "AccessDenied") // never fails
			return resp
		}
		got, err := l.listing(t, size, ListOptions{Delimiter: true})
		wantIs(t, fmt.Sprintf("from request %d on", at), err, ErrPermission)
		if !slices.Equal(got, keys[:len(got)]) {
			t.Errorf("from request %d on: what came before is no beginning of the keys", at)
		}
	}
}

// A store that turns out to have no order behind the end of a range is an error once,
// and listed page by page from then on.
func TestListWithoutOrderBehindARange(t *testing.T) {
	const size = 50
	var keys []string
	for i := range 40 * size {
		keys = append(keys, fmt.Sprintf("d/%05d", i))
	}
	l := newLists(byBytes, keys)
	slices.Reverse(l.keys[30*size+10 : 30*size+30])
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, l.answer)
	f.listPage = size
	_, err := f.listed(t, "d/", ListOptions{})
	wantIs(t, "List", err, ErrUnavailable)
	asked := l.requests.Load()
	n := 0
	for _, err := range f.List(t.Context(), Location{Bucket: "bucket", Key: "d/"}, ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if asked = l.requests.Load() - asked; n != len(keys) || asked != 40 {
		t.Errorf("then %d keys by %d requests", n, asked)
	}
}

// A directory bucket has no order: it is never split.
func TestListDirectoryBucketIsNotSplit(t *testing.T) {
	if s := new(S3); !s.unordered("name--use1-az4--x-s3") || s.unordered("name") {
		t.Error("directory buckets are told by their names")
	}
}

func FuzzSplitAt(f *testing.F) {
	f.Add([]byte("part-000"), []byte("part-001"), []byte(""), 1000)
	f.Fuzz(func(t *testing.T, a, b, hi []byte, n int) {
		if n < 1 || n > 1<<20 || bytes.Compare(a, b) >= 0 {
			return
		}
		entries := make([]Entry, 0, 20)
		for i := range 18 {
			entries = append(entries, Entry{Object: Object{Location: Location{Key: "d/" + string(a) + strings.Repeat("a", i)}}})
		}
		entries = append(entries, Entry{Object: Object{Location: Location{Key: "d/" + string(b)}}})
		end := ""
		if len(hi) > 0 {
			end = "d/" + string(hi)
		}
		last := entries[len(entries)-1].Key
		at, ok := splitAt(entries, last, end, 2, n)
		if ok && (at <= last || end != "" && at >= end || !portable(at[2:]) || !strings.HasPrefix(at, "d/")) {
			t.Errorf("split %q..%q, %q at %q", entries[0].Key, last, end, at)
		}
	})
}
