package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestDroppedTableIsNotResurrected: by who has read it, and does not know that another
// dropped it; who dropped it itself, or has read nothing, makes a new one.
func TestDroppedTableIsNotResurrected(t *testing.T) {
	onCatalogs(t, []string{"--write=delete"}, func(l editable) {
		out := mustPython(l.t, l.Lake, `
import os, errno, subprocess
path, temp = "db/text.json", "db/.text.json.abcdef"
text = open(path).read()
def save():
    with open(path, "w") as f: f.write(text)
def synced():
    with open(path, "w") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
def renamed():
    with open(temp, "w") as f: f.write(text)
    try: os.replace(temp, path)
    finally:
        if os.path.exists(temp): os.unlink(temp)
def outcome(write):
    try: write()
    except OSError as e: return errno.errorcode[e.errno]
def other(script): subprocess.run(["sh", "-ec", script], check=True)
for write in save, synced, renamed, save:
    other("cp db/text.json $HOME/kept && rm db/text.json")
    print(outcome(write), os.path.exists(path))
    other("cp $HOME/kept db/text.json")
    text = open(path).read()
for write in save, synced, renamed:
    os.unlink(path)
    print(outcome(write), os.path.exists(path))
save()
other("rm db/text.json")
print(outcome(save), os.path.exists(path))
`)
		want := strings.Repeat("ESTALE False\n", 4) + strings.Repeat("None True\n", 3) + "ESTALE False\n"
		if out != want {
			l.t.Errorf("writes of what was dropped answer\n%swant\n%s", out, want)
		}
		l.wantTables()
	})
}

// TestClosedTemporaryNamesMakeRoom: they wait for a rename that may never come, and what
// is being written needs their place. The oldest goes first.
func TestClosedTemporaryNamesMakeRoom(t *testing.T) {
	onCatalogs(t, []string{"--temporary-linger=1h"}, func(l editable) {
		t := l.t
		exists := func(i int) bool {
			_, err := l.Lstat(fmt.Sprintf("db/e%d.tmp", i))
			return err == nil
		}
		for i := range 64 {
			wantErrno(t, "a temporary name", l.write(fmt.Sprintf("e%d.tmp", i), "x"), 0)
		}
		l.MustSh("cp db/text.json $HOME/x && cp $HOME/x db/text.json")
		if exists(0) || !exists(1) || !exists(63) {
			t.Errorf("left are the first %v, the second %v, the last %v; want the oldest gone alone", exists(0), exists(1), exists(63))
		}
		big := strings.Repeat("x", 1<<20)
		for i := range 70 {
			wantErrno(t, "a large one", l.write(fmt.Sprintf("e%d.tmp", 100+i), big), 0)
		}
		if exists(63) || exists(105) || !exists(106) || !exists(169) {
			t.Errorf("of the large ones left are %v, %v, %v", exists(105), exists(106), exists(169))
		}
		wantErrno(t, "a rename of one that went", rename2(l.Lake, "db/e1.tmp", "db/text.json", 0), syscall.ENOENT)
		l.wantK("old")
	})
}

// TestNamesOfNoTable: they are refused when they are made, not when they are closed.
func TestNamesOfNoTable(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		for _, name := range []string{".json", "..json", "...json", ".lakefs.json"} {
			got := mustPython(l.t, l.Lake, `
import os, errno
try: os.open("db/`+name+`", os.O_WRONLY | os.O_CREAT)
except OSError as e: print(errno.errorcode[e.errno])
`)
			if got != "EPERM\n" {
				l.t.Errorf("a new %s answers %q", name, got)
			}
			l.MustSh("echo x > db/sedabcdef")
			wantErrno(l.t, "a rename to "+name, rename2(l.Lake, "db/sedabcdef", "db/"+name, 0), syscall.EPERM)
		}
		l.wantTables("text")
	})
}

// TestTwoEditorsOfOneTable: of changes of one version one is taken, whatever the catalog
// compares, and who is told 0 finds its change.
func TestTwoEditorsOfOneTable(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		out := mustPython(l.t, l.Lake, `
import json, errno, os
def edit(i):
    told = []
    for n in range(8):
        key = "p%d-%d" % (i, n)
        with open("db/text.json") as f: text = f.read()
        at = text.index('"k"')
        text = text[:at] + '"%s": "x", ' % key + text[at:]
        try:
            with open("db/text.json", "w") as f: f.write(text)
            told.append(key)
        except OSError as e:
            if e.errno != errno.ESTALE: raise
    return told
ends = []
for i in range(3):
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, json.dumps(edit(i)).encode())
        os._exit(0)
    os.close(w)
    ends.append(r)
told = [key for r in ends for key in json.loads(os.read(r, 65536))]
text = open("db/text.json").read()
print(len(told) > 0, [key for key in told if '"%s"' % key not in text])
`)
		if out != "True []\n" {
			l.t.Errorf("taken, and not there: %s", out)
		}
	})
}
