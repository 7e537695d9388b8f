package fs_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// editors are programs that change OLD to NEW in text.json, each in its own way: in
// place, by a temporary file that is renamed over it, by a copy from elsewhere.
var editors = []struct{ name, needs, script string }{
	{"sed -i", "sed", `sed -i s/OLD/NEW/ text.json`},
	{"an editor that is sed", "sed", `EDITOR='sed -i s/OLD/NEW/'; $EDITOR text.json`},
	{"perl -i", "perl", `perl -i -pe s/OLD/NEW/ text.json`},
	{"gawk -i inplace", "gawk", `gawk -i inplace '{gsub("OLD","NEW");print}' text.json`},
	{"jq and sponge", "sponge", `jq 'walk(if . == "OLD" then "NEW" else . end)' text.json | sponge text.json`},
	{"jq into it", "jq", `cp text.json $T/x && jq 'walk(if . == "OLD" then "NEW" else . end)' $T/x > text.json`},
	{"cp", "cp", `sed s/OLD/NEW/ text.json > $T/x && cp $T/x text.json`},
	{"cp -p", "cp", `sed s/OLD/NEW/ text.json > $T/x && cp -p $T/x text.json`},
	{"cp -a", "cp", `sed s/OLD/NEW/ text.json > $T/x && cp -a $T/x text.json`},
	{"install", "install", `sed s/OLD/NEW/ text.json > $T/x && install -m 600 $T/x .text.json.abcdef && mv .text.json.abcdef text.json`},
	{"tee", "tee", `sed s/OLD/NEW/ text.json > $T/x && tee text.json < $T/x`},
	{"cat", "cat", `sed s/OLD/NEW/ text.json > $T/x && cat $T/x > text.json`},
	{"dd", "dd", `sed s/OLD/NEW/ text.json > $T/x && dd if=$T/x of=text.json bs=100 conv=fsync`},
	{"rsync", "rsync", `sed s/OLD/NEW/ text.json > $T/x && rsync -aI $T/x text.json`},
	{"rsync in place", "rsync", `sed s/OLD/NEW/ text.json > $T/x && rsync -aI --inplace $T/x text.json`},
	{"ed", "ed", `printf ',s/OLD/NEW/\nwq\n' | ed -s text.json`},
	{"ex", "ex", `printf '%%s/OLD/NEW/\nwq\n' | ex -s text.json`},
	{"vim", "vim", `vim -es -c '%s/OLD/NEW/' -c wq text.json < /dev/null`},
	{"vim, which writes twice", "vim", `vim -u NONE -es -c '%s/OLD/half/' -c w -c '%s/half/NEW/' -c wq text.json < /dev/null`},
	{"vim without its settings", "vim", `vim -u NONE -es -c '%s/OLD/NEW/' -c wq text.json < /dev/null`},
	{"emacs", "emacs", `emacs --batch text.json --eval '(while (search-forward "OLD" nil t) (replace-match "NEW" t))' -f save-buffer`},
	{"Python's json", "python3", `python3 -c '
import json
def walk(v):
    if isinstance(v, dict): return {k: walk(x) for k, x in v.items()}
    if isinstance(v, list): return [walk(x) for x in v]
    return "NEW" if v == "OLD" else v
with open("text.json") as f: entry = walk(json.load(f))
with open("text.json", "w") as f: json.dump(entry, f, indent=1)'`},
	{"Python's tempfile and os.replace", "python3", `python3 -c '
import os, tempfile
text = open("text.json").read().replace("OLD", "NEW")
fd, name = tempfile.mkstemp(dir=".")
with os.fdopen(fd, "w") as f:
    f.write(text)
    f.flush()
    os.fsync(f.fileno())
os.chmod(name, 0o644)
os.utime(name)
os.replace(name, "text.json")'`},
	{"read and written by one descriptor", "python3", `python3 -c '
with open("text.json", "r+") as f:
    text = f.read().replace("OLD", "NEW")
    f.seek(0)
    f.write(text)
    f.truncate()
    f.seek(0)
    assert f.read() == text
    assert f.seek(0, 2) == len(text)'`},
	{"cut and appended to", "python3", `python3 -c '
import os
text = open("text.json").read().replace("OLD", "NEW")
fd = os.open("text.json", os.O_WRONLY | os.O_APPEND)
os.ftruncate(fd, 0)
for i in range(0, len(text), 100): os.write(fd, text[i:i+100].encode())
os.close(fd)'`},
	{"mapped", "python3", `python3 -c '
import mmap, os
fd = os.open("text.json", os.O_RDWR)
m = mmap.mmap(fd, 0)
text = m[:].decode().replace("OLD", "NEW").encode()
os.ftruncate(fd, len(text))
m.resize(len(text)) if len(text) != len(m) else None
m[:] = text
m.flush()
m.close()
os.close(fd)'`},
}

// TestEntryIsEditedByTools: each changes the catalog's entry, whole, and leaves what it
// does not know.
func TestEntryIsEditedByTools(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		was := "old"
		for i, e := range editors {
			if _, err := exec.LookPath(e.needs); err != nil {
				t.Logf("%s: no %s here", e.name, e.needs)
				continue
			}
			is := fmt.Sprintf("v%d%s", i, strings.Repeat("x", i%5))
			script := strings.NewReplacer("OLD", was, "NEW", is).Replace(e.script)
			if r := l.Sh("export T=$HOME; cd db && " + script); r.Code != 0 {
				t.Errorf("%s: exit code %d\n%s%s", e.name, r.Code, r.Out, r.Err)
				continue
			}
			l.wantK(is)
			if text := l.read("text.json"); !strings.Contains(text, `"`+is+`"`) {
				t.Errorf("after %s the mount has %s", e.name, text)
			}
			info, err := l.Lstat("db/text.json")
			if err != nil || info.Size() != int64(len(l.read("text.json"))) || info.Mode() != 0o600 {
				t.Errorf("after %s: %v, %v", e.name, info, err)
			}
			was = is
			if t.Failed() {
				return
			}
		}
		l.wantTables("text")
		if reasons := l.rejections("db"); len(reasons) != 0 {
			t.Errorf("refused: %v", reasons)
		}
	})
}

// TestEntryIsWrittenAgainFromABuffer: whose text is of the version that its own first
// write replaced, whatever that text says; until another writes.
func TestEntryIsWrittenAgainFromABuffer(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		got := mustPython(l.t, l.Lake, `
import errno, subprocess
text = open("db/text.json").read()
def save():
    with open("db/text.json", "w") as f: f.write(text)
for k in "one", "two", "three":
    text = text.replace("old", k).replace("one", k).replace("two", k)
    save()
subprocess.run(["sed", "-i", "s/three/theirs/", "db/text.json"], check=True)
text = text.replace("three", "mine")
try: save()
except OSError as e: print(errno.errorcode[e.errno])
`)
		if got != "ESTALE\n" {
			l.t.Errorf("after another's write: %q", got)
		}
		l.wantK("theirs")
	})
}

// TestEntryIsWrittenOnce: however a descriptor is handed around, the catalog is given
// the whole of what was written and nothing before that.
func TestEntryIsWrittenOnce(t *testing.T) {
	scripts := map[string]string{
		"subshell":           `(cat $T/1; sleep .05; cat $T/2) > text.json`,
		"group":              `{ cat $T/1; /bin/true; cat $T/2; } > text.json`,
		"exec":               `exec 3> text.json; cat $T/1 >&3; (:); cat $T/2 >&3; exec 3>&-`,
		"read-write exec":    `exec 3<> text.json; truncate -s 0 /proc/self/fd/3; cat $T/1 >&3; (:); cat $T/2 >&3; exec 3>&-`,
		"append":             `: > $T/empty; cat $T/1 > $T/whole; cat $T/2 >> $T/whole; dd if=$T/whole of=text.json bs=50 oflag=dsync`,
		"Python's dup":       `python3 -c 'import os; f=open("text.json","wb"); g=os.dup(f.fileno()); os.write(g, open("'$T'/1","rb").read()); os.close(g); f.write(open("'$T'/2","rb").read()); f.close()'`,
		"Python's children":  `python3 -c 'import subprocess as s; f=open("text.json","wb"); s.run(["cat","'$T'/1","'$T'/2"],stdout=f,check=True); f.close()'`,
		"a second handle":    `python3 -c 'import os; f=os.open("text.json",os.O_WRONLY|os.O_TRUNC); g=os.open("/proc/self/fd/%d"%f,os.O_WRONLY|os.O_APPEND); os.write(f,open("'$T'/1","rb").read()); os.close(f); os.write(g,open("'$T'/2","rb").read()); os.close(g)'`,
		"renamed while open": `python3 -c 'import os; f=open("tmp12345678","wb"); f.write(open("'$T'/1","rb").read()); f.flush(); os.rename("tmp12345678","text.json"); f.write(open("'$T'/2","rb").read()); f.close()'`,
	}
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		was := "old"
		for name, script := range scripts {
			is := strings.NewReplacer(" ", "-", "'", "").Replace(name)
			l.MustSh(fmt.Sprintf(`sed 's/%s/%s/' db/text.json > $HOME/x; head -c 100 $HOME/x > $HOME/1; tail -c +101 $HOME/x > $HOME/2`, was, is))
			if r := l.Sh("export T=$HOME; cd db && " + script); r.Code != 0 {
				t.Errorf("%s: exit code %d\n%s%s", name, r.Code, r.Out, r.Err)
			}
			l.Eventually("the entry is written by "+name, 20*time.Second, func() bool { return l.parameters("text")["k"] == is })
			was = is
		}
		if strings.Contains(l.Log(), "operation=publish") {
			t.Error("something that is no whole entry was given to the catalog")
		}
	})
}

// TestNothingChangedWritesNothing: nor does what was only looked at, or touched.
func TestNothingChangedWritesNothing(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		before, err := l.Lstat("db/text.json")
		if err != nil {
			t.Fatal(err)
		}
		l.foreign("old", "theirs")
		l.MustSh(`cd db; exec 3<> text.json; exec 3>&-; touch text.json; chmod 644 text.json; chown $(id -u) text.json; touch -d yesterday text.json
			python3 -c 'import os; f=os.open("text.json",os.O_RDWR); os.read(f,10); os.fchmod(f,0o600); os.fsync(f); os.close(f)'`)
		l.wantK("theirs")
		l.MustSh("test -r db/text.json && test -w db/text.json")
		if after, err := l.Lstat("db/text.json"); err != nil || before.Sys().(*syscall.Stat_t).Ino != after.Sys().(*syscall.Stat_t).Ino { //nolint:forcetypeassert // of this system
			t.Errorf("the inode number was %v, is %v, %v", before, after, err)
		}
	})
}

// TestNewTable: an entry of a new name makes a table, which is there with its directory
// when the close returns.
func TestNewTable(t *testing.T) {
	onCatalogs(t, []string{"--write=delete"}, func(l editable) {
		t := l.t
		entry := l.newEntry()
		if _, err := os.Lstat(l.Path("db/fresh")); !os.IsNotExist(err) { // the kernel remembers that
			t.Fatal(err)
		}
		l.MustSh("cat > $HOME/fresh.json <<'END'\n" + entry + "\nEND")
		mustPython(t, l.Lake, `
import os, sys
f = open("db/fresh.json", "x")
assert "fresh.json" not in os.listdir("db")
assert os.stat("db/fresh.json").st_size == 0
try: open("db/fresh.json", "x"); sys.exit("it is there")
except FileExistsError: pass
f.write(open(os.environ["HOME"] + "/fresh.json").read())
f.flush()
assert open("db/fresh.json").read() == open(os.environ["HOME"] + "/fresh.json").read()
assert not os.path.exists("db/fresh")
f.close()
assert "fresh.json" in os.listdir("db") and "fresh" in os.listdir("db")
`)
		l.wantTables("fresh", "text")
		l.Eventually("the new table's directory", 0, func() bool {
			_, err := l.Lstat("db/fresh")
			return err == nil
		})
		l.MustSh("mkdir -p db/fresh/dt=2026-01-02 && echo 2,b > db/fresh/dt=2026-01-02/b && cat db/fresh/dt=2026-01-02/b")
		wantErrno(t, "an entry that is there", l.Do("create", func() error {
			_, err := os.OpenFile(l.Path("db/fresh.json"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return err
		}), syscall.EEXIST)
		l.MustSh("rm db/fresh.json")
		if _, there := l.catalogEntry("fresh"); there {
			t.Error("the catalog has the removed table")
		}
		l.wantTables("text")
		l.Eventually("the removed table's directory is gone", 0, func() bool {
			_, err := l.Lstat("db/fresh")
			return os.IsNotExist(err)
		})
		if got, there := inStore(t, l.Lake, "db/fresh/dt=2026-01-02/b"); got != "2,b\n" {
			t.Errorf("the data are %q, there %v: an entry's removal takes none", got, there)
		}
		wantErrno(t, "remove what is not there", l.Do("rm", func() error { return os.Remove(l.Path("db/fresh.json")) }), syscall.ENOENT)
	})
}

// newEntry is the entry of a new table db.fresh like db.text.
func (l editable) newEntry() string {
	const name = "fresh"
	l.t.Helper()
	entry := l.read("text.json")
	if l.Catalog == nil {
		entry = strings.Replace(entry, `"name": "text"`, `"name": "`+name+`"`, 1)
		return strings.ReplaceAll(entry, "db/text", "db/"+name)
	}
	entry = strings.Replace(entry, `"Name": "text"`, `"Name": "`+name+`"`, 1)
	return strings.ReplaceAll(entry, "db/text", "db/"+name)
}

// TestReadersSeeWholeEntries: 20 readers, while one edits 30 times.
func TestReadersSeeWholeEntries(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		out := l.MustSh(`cd db; for i in $(seq 20); do
			(while ! test -e $HOME/done; do
				jq -e '[.. | strings | select(test("^(old|v[0-9]+x*)$"))] | length == 1' text.json > /dev/null || echo reader $i: $?
			done) &
		done
		was=old
		for i in $(seq 30); do
			is=v$i$(printf '%*s' $((i % 7)) '' | tr ' ' x)
			if test $((i % 2)) = 0; then sed -i "s/\"$was\"/\"$is\"/" text.json || echo edit $i: $?
			else sed "s/\"$was\"/\"$is\"/" text.json > $HOME/x; cp $HOME/x text.json || echo copy $i: $?; fi
			was=$is
		done
		: > $HOME/done; wait`)
		if out != "" {
			t.Errorf("%s", out)
		}
		l.wantK("v30xx")
	})
}

// TestKilledDaemonLeavesTheOldEntry: a draft is in memory alone.
func TestKilledDaemonLeavesTheOldEntry(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		begin(t, l.Lake, `cd ../..; exec 3> text.json; echo '{"half": ' >&3; exec 4> new.json; echo '{' >&4; : > $READY; sleep 1000`)
		l.Kill()
		l.wantK("old")
		l.Start()
		l.wantTables("text")
		if text := l.read("text.json"); !strings.Contains(text, `"old"`) {
			t.Errorf("the mount has %s", text)
		}
	})
}

// TestKilledWriterWritesNothing: also where what it wrote is an entry.
func TestKilledWriterWritesNothing(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		for _, script := range []string{
			`sed s/old/new/ text.json > $HOME/x; python3 -c 'import os; f=open("text.json","w"); f.write(open(os.environ["HOME"]+"/x").read()); f.flush(); os.kill(os.getpid(),9)'`,
			`python3 -c 'import os; f=open("new.json","w"); f.write("{"); f.flush(); os.kill(os.getpid(),9)'`,
			`python3 -c 'import os; f=open("sedabcdef","w"); f.write("{"); f.flush(); os.kill(os.getpid(),9)'`,
		} {
			if r := l.Sh("cd db; " + script + "; exit $?"); r.Code != 128+9 {
				t.Fatalf("%s: exit code %d, %s", script, r.Code, r.Err)
			}
		}
		l.WaitLog("writer killed: the entry is not written")
		l.Eventually("nothing is left of the drafts", 0, func() bool {
			_, err := l.Lstat("db/new.json")
			_, other := l.Lstat("db/sedabcdef")
			return os.IsNotExist(err) && os.IsNotExist(other)
		})
		l.wantK("old")
		l.wantTables("text")
	})
}

// TestUnmountNamesOpenEntries: they stay as they were.
func TestUnmountNamesOpenEntries(t *testing.T) {
	onCatalogs(t, nil, func(l editable) {
		t := l.t
		begin(t, l.Lake, `cd ../..; exec 3> text.json; echo '{"half": ' >&3; : > $READY; cd /; sleep 1000`)
		l.Signal(syscall.SIGTERM)
		l.Wait()
		if log := l.Log(); !strings.Contains(log, "while a catalog entry is being written") || !strings.Contains(log, "path=db/text.json") {
			t.Error("the log does not name the entry")
		}
		l.wantK("old")
	})
}
