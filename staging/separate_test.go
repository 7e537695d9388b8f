package staging

import "testing"

// TestSeparate: a file that is made independent has all bytes and something to publish,
// though nobody wrote to it, also after the older object and the process are gone.
func TestSeparate(t *testing.T) {
	for name, before := range map[string]func(f *File){
		"untouched": func(*File) {},
		"patched":   func(f *File) { mustWrite(t, f, 0, "PATCH") },
	} {
		t.Run(name, func(t *testing.T) {
			e := newCopyEnv(t, moveSize)
			f, old := e.overOlder(t)
			before(f)
			want, changes := readAll(t, f), f.Changes()
			if err := f.Separate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if rec := f.Record(); rec.Base != nil || !f.Dirty() || f.Changes() != changes {
				t.Errorf("base %v, dirty %v, %d changes; want none, dirty, %d", rec.Base, f.Dirty(), f.Changes(), changes)
			}
			e.bucket.remove(old.Key)
			mustEqual(t, "without the object", readAll(t, f), want)
			f = e.reopen(t)
			mustEqual(t, "after a restart", readAll(t, f), want)
			mustEqual(t, "to be published", sealed(t, f), want)
		})
	}
}

// TestSeparateFails: a file whose older object is gone is as it was, and not poisoned.
func TestSeparateFails(t *testing.T) {
	e := newCopyEnv(t, moveSize)
	f, old := e.overOlder(t)
	e.bucket.remove(old.Key)
	if err := f.Separate(t.Context()); err == nil {
		t.Error("a file without its older object is separate")
	}
	if f.Record().Base == nil || f.Dirty() || f.Poisoned() != nil {
		t.Errorf("base %v, dirty %v, poison %v", f.Record().Base, f.Dirty(), f.Poisoned())
	}
}
