package fs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// Answers that are lost: what took effect is recognised, and not done again.

// TestCase21LostAnswersOnS3: the program sees a success, and the store one request
// that took effect.
func TestCase21LostAnswersOnS3(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		op, name string // whose answer is lost
		script   string
		after    map[string]string
	}{
		"a new file":          {"PutObject", "new", `printf new >new`, map[string]string{"old": "old\n", "new": "new"}},
		"a copied one":        {"PutObject", "big", `head -c 9M /dev/zero | tr '\0' x >$TMP/b; cp $TMP/b big`, map[string]string{"old": "old\n", "big": strings.Repeat("x", 9<<20)}},
		"an overwrite":        {"PutObject", "old", `printf over >old`, map[string]string{"old": "over"}},
		"an append":           {"PutObject", "old", `printf more >>old`, map[string]string{"old": "old\nmore"}},
		"an fsync":            {"PutObject", "new", `printf new | dd of=new conv=fsync status=none`, map[string]string{"old": "old\n", "new": "new"}},
		"the copy of a mv":    {"CopyObject", "moved", `mv old moved`, map[string]string{"moved": "old\n"}},
		"the removal of a mv": {"DeleteObject", "old", `mv old moved`, map[string]string{"moved": "old\n"}},
		"a removal":           {"DeleteObject", "old", `rm old`, nil},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, map[string]string{"old": "old\n"})
			warm(t, l)
			rule := onFile(l, c.op, c.name, faulty.LoseAnswer{})
			rule.Times = 1
			lost := l.Proxy.Add(rule)
			dir := t.TempDir()
			l.MustSh(`set -eo pipefail; TMP=` + dir + `; cd ` + csvDir + `; ` + c.script)
			if lost.Hits() != 1 {
				t.Fatalf("%d answers were lost, want one\n%s", lost.Hits(), asked(l))
			}
			requests := 0
			for _, q := range l.Proxy.Log() {
				if strings.HasPrefix(q.Key, l.Key(csvDir+"/"+c.name)) && q.Op == c.op {
					requests++
				}
			}
			if c.op != "DeleteObject" && requests != 1 { // to remove once more does no harm
				t.Errorf("%d requests of %s, want one\n%s", requests, c.op, asked(l))
			}
			for name, content := range c.after {
				wantStore(t, l, csvDir+"/"+name, content)
				wantContent(t, l, csvDir+"/"+name, content)
			}
			wantSettled(t, l)
			wantBucket(t, l, slices.Collect(maps.Keys(c.after))...)
			if log := l.Log(); strings.Contains(log, "level=ERROR") {
				t.Error("an error was logged")
			}
		})
	}
}

// TestCase21LostAnswersOfAppendersOnS3: each line is there once, though every
// other answer is lost.
func TestCase21LostAnswersOfAppendersOnS3(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"log": ""})
	m := l.Second("--write=delete")
	n := 0
	rule := onFile(l, "PutObject", "log", faulty.LoseAnswer{})
	rule.If = func(*faulty.Request) bool { n++; return n%2 == 0 } // under the proxy's mutex
	lost := l.Proxy.Add(rule)
	const lines = `for i in $(seq 20); do echo "$w $i" >>log; done`
	l.MustSh(`(cd ` + l.Path(csvDir) + `; w=a; ` + lines + `) & (cd ` + m.Path(csvDir) + `; w=b; ` + lines + `) & wait`)
	wantSettled(t, l)
	wantSettled(t, m)
	if lost.Hits() < 5 {
		t.Errorf("%d answers were lost: this test shows nothing", lost.Hits())
	}
	log, _ := inStore(t, l, csvDir+"/log")
	appended(t, log, 20, "a", "b")
	wantBucket(t, l, "log")
}
