package fs

import "testing"

func TestCloseRuleFlush(t *testing.T) {
	dirty := fileFacts{publishable: true, touched: true}
	fresh := fileFacts{publishable: true} // a new file, never written
	clean := fileFacts{touched: true}
	opener := flushFacts{opener: true}
	for name, c := range map[string]struct {
		writers  int
		onKilled onKilled
		flush    flushFacts
		file     fileFacts
		want     decision
		torn     bool
	}{
		"close by the opener":                     {1, killedStage, opener, dirty, doPublish, false},
		"touch: a new empty file":                 {1, killedStage, opener, fresh, doPublish, false},
		"nothing to publish":                      {1, killedStage, opener, clean, doNothing, false},
		"a child's exit, descriptor inherited":    {1, killedStage, flushFacts{}, dirty, doDefer, false},
		"exec 3>f: dup2 and close of the first":   {1, killedStage, flushFacts{opener: true, held: true}, dirty, doDefer, false},
		"another descriptor of the node is open":  {2, killedStage, opener, dirty, doDurable, false},
		"opener killed while writing":             {1, killedStage, flushFacts{opener: true, killed: true}, dirty, doTear, true},
		"writing child killed, opener lives":      {1, killedStage, flushFacts{killed: true}, dirty, doTear, true},
		"killed, never written: seq 2>err | head": {1, killedStage, flushFacts{opener: true, killed: true}, fresh, doPublish, false},
		"killed, --on-killed=publish":             {1, killedPublish, flushFacts{opener: true, killed: true}, dirty, doPublish, false},
		"killed child, --on-killed=publish":       {1, killedPublish, flushFacts{killed: true}, dirty, doDefer, false},
	} {
		r := closeRule{writers: c.writers, onKilled: c.onKilled}
		if got := r.flush(c.flush, c.file); got != c.want || r.torn != c.torn {
			t.Errorf("%s: decision %d, torn %v; want %d, %v", name, got, r.torn, c.want, c.torn)
		}
	}
}

// A close is over when close(2) returns: its RELEASE, which the kernel sends
// later, is not waited for by who opens the file next.
func TestCloseRuleCountsClosedHandlesNoMore(t *testing.T) {
	dirty, opener := fileFacts{publishable: true, touched: true}, flushFacts{opener: true}
	r := closeRule{}
	r.opened()
	r.opened()
	if got := r.flush(opener, dirty); got != doDurable {
		t.Errorf("the first of two: %d, want durable", got)
	}
	r.close()
	if got := r.flush(opener, dirty); got != doPublish {
		t.Errorf("the second, before the RELEASE of the first: %d, want publish", got)
	}
	again := opener
	again.again = true
	if got := r.flush(again, dirty); got != doDurable {
		t.Errorf("the first once more: %d, want durable, for the second is open", got)
	}
	r.reopen()
	if got := r.flush(opener, dirty); got != doDurable {
		t.Errorf("the second, when the first is used again: %d, want durable", got)
	}
	for _, f := range []flushFacts{{}, {opener: true, held: true}, {opener: true, killed: true}} {
		if f.closes() {
			t.Errorf("%+v closes the handle", f)
		}
	}
}

func TestCloseRuleRelease(t *testing.T) {
	dirty := fileFacts{publishable: true, touched: true}
	for name, c := range map[string]struct {
		rule closeRule
		file fileFacts
		want decision
	}{
		"what no flush published":         {closeRule{writers: 1}, dirty, doPublish},
		"another writer is still open":    {closeRule{writers: 2}, dirty, doNothing},
		"a close was told that it failed": {closeRule{writers: 1}, fileFacts{publishable: true, touched: true, refused: true}, doNothing},
		"already published":               {closeRule{writers: 1}, fileFacts{}, doNothing},
		"torn":                            {closeRule{writers: 1, torn: true}, dirty, doNothing},
		"unlinked: nothing is published":  {closeRule{writers: 1, unlinked: true}, dirty, doNothing},
	} {
		writers := c.rule.writers
		if got := c.rule.release(c.file); got != c.want {
			t.Errorf("%s: decision %d, want %d", name, got, c.want)
		}
		if c.rule.writers != writers-1 {
			t.Errorf("%s: %d writers left, want %d", name, c.rule.writers, writers-1)
		}
	}
}

// A torn file stays torn: the flushes of other holders must not publish it.
func TestCloseRuleTornStays(t *testing.T) {
	dirty := fileFacts{publishable: true, touched: true}
	r := closeRule{writers: 1}
	r.flush(flushFacts{killed: true}, dirty)
	if got := r.flush(flushFacts{opener: true}, dirty); got != doNothing {
		t.Errorf("flush after the tear: %d, want nothing", got)
	}
	if got := r.release(dirty); got != doNothing {
		t.Errorf("release after the tear: %d, want nothing", got)
	}
}
