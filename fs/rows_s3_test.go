package fs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What the texts cost at a store, as the proxy counts it.

// textLatency is what each answer takes in storeOfRows: so long that requests which
// depend on no answer are seen to go out together.
const textLatency = 500 * time.Millisecond

// storeOfRows mounts db.t with a file of some MiB, its directory known, and counts from
// there.
func storeOfRows(t *testing.T) *mounttest.Lake {
	t.Helper()
	l := mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{ofRows(t, 1_000_000, nil)}, Flags: longTTL, Timeout: 3 * time.Minute,
	})
	l.MustSh(`ls -lR db/t >/dev/null`)
	l.Proxy.SetLatency(faulty.Latency{FirstByte: textLatency})
	l.Proxy.Reset()
	return l
}

// wantRounds asserts how many rounds of requests there were at most since the last
// Reset, each of which waits for an answer of the one before, and how many bytes came.
func wantRounds(t *testing.T, l *mounttest.Lake, what string, rounds int, bytes int64) {
	t.Helper()
	var got int
	var sent int64
	var b strings.Builder
	began := time.Time{}
	for _, q := range l.Proxy.Log() {
		if q.When.Sub(began) >= textLatency {
			got, began = got+1, q.When
		}
		sent += q.Sent
		fmt.Fprintf(&b, "\n%s %s at %s: %d bytes", q.Op, q.Range, q.When.Format(time.StampMilli), q.Sent)
	}
	if got > rounds || sent > bytes {
		t.Errorf("%s: %d rounds and %d bytes, want %d and %d at most:%s", what, got, sent, rounds, bytes, b.String())
	}
	l.Proxy.Reset()
}

func TestRequestsOfTexts(t *testing.T) {
	t.Parallel()
	l := storeOfRows(t)
	dir := strings.TrimSuffix(inRows, "rows")
	l.MustSh(`ls ` + dir + ` ` + inRows + ` ` + dir + `footer; stat ` + inRows + `/f.jsonl ` + dir + `footer/f.json; cat ` + inRows + `/f.spec`)
	wantRounds(t, l, "look-ups", 0, 0)
	if got := l.MustSh(`jq .num_rows ` + dir + `footer/f.json`); got != "1000000\n" {
		t.Errorf("the footer has %q rows", got)
	}
	wantRounds(t, l, "footer", 1, 1<<20)
	l.MustSh(`cat ` + dir + `footer/f.json >/dev/null`)
	wantRounds(t, l, "footer again", 0, 0)
	if got := l.MustSh(`head -3 ` + inRows + `/f.jsonl | tail -1`); got != rowLine(2)+"\n" {
		t.Errorf("head: %q", got)
	}
	wantRounds(t, l, "head", 3, 16<<20)
}

// TestStoreFailsUnderRows: what the store answers is what the reader is told.
func TestStoreFailsUnderRows(t *testing.T) {
	t.Parallel()
	l := storeOfRows(t)
	l.Proxy.SetLatency(faulty.Latency{})
	l.MustSh(`cat ` + strings.TrimSuffix(inRows, "rows") + `footer/f.json >/dev/null`)
	refused := l.Proxy.Add(faulty.Rule{Op: "GetObject", Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}})
	if r := l.Sh(`cat ` + inRows + `/f.jsonl`); r.Code == 0 || !strings.Contains(r.Err, "Permission denied") {
		t.Errorf("cat of what is refused: %+v", r)
	}
	wantLogged(t, l, inRows+"/f.jsonl")
	refused.Remove()
	if got := l.MustSh(`wc -l <` + inRows + `/f.jsonl`); got != "1000000\n" {
		t.Errorf("then: %q", got)
	}
	wantNoChildren(t, l)
}
