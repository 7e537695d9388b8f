package fs_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// seen polls a file of the warehouse until stop, and returns each content that
// it had, in order.
func seen(path string) (stop func() []string) {
	done, ended := make(chan struct{}), make(chan struct{})
	var contents []string
	look := func() {
		raw, err := os.ReadFile(path)
		if err == nil && (len(contents) == 0 || contents[len(contents)-1] != string(raw)) {
			contents = append(contents, string(raw))
		}
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				look()
				return
			case <-tick.C:
				look()
			}
		}
	}()
	var once sync.Once
	return func() []string {
		once.Do(func() { close(done) })
		<-ended
		return contents
	}
}

// topologies are ways in which programs hand one descriptor around. Each leaves
// "one\ntwo\n" in f, published once: whoever polls the store sees nothing else.
var topologies = []struct {
	name, script string
	late         bool // the last close is another process's than the opener: published at RELEASE
}{
	{name: "redirection of one command", script: `printf 'one\ntwo\n' >f`},
	{name: "redirection of an external command", script: `/usr/bin/printf 'one\ntwo\n' >f`},
	{name: "subshell", script: `(echo one; echo two) >f`},
	{name: "subshell of external commands", script: `(/bin/echo one; sleep .05; /bin/echo two) >f`},
	{name: "group", script: `{ echo one; echo two; } >f`},
	{name: "group of external commands", script: `{ /bin/echo one; sleep .05; /bin/true; /bin/echo two; } >f`},
	{name: "case 8: exec with a child between", script: `exec 3>f; echo one >&3; /bin/true; echo two >&3; exec 3>&-`},
	{name: "exec with subshells between", script: `exec 3>f; (:); echo one >&3; (:); (:) 3>&-; sh -c 'echo two >&3'; (:); exec 3>&-`},
	{name: "exec with command substitution", script: `exec 3>f; x=$(echo one; : >&3); echo $x >&3; y=$(/bin/echo two); echo $y >&3; exec 3>&-`},
	{name: "exec without a last close", script: `exec 3>f; echo one >&3; /bin/true; echo two >&3`},
	{name: "two duplicates", script: `exec 3>f; exec 4>&3; echo one >&3; exec 3>&-; echo two >&4; exec 4>&-`},
	{name: "stdout and stderr", script: `sh -c 'echo one; echo two >&2' >f 2>&1`},
	{name: "loop", script: `for w in one two; do echo $w; /bin/true; done >f`},
	{name: "pipeline into a redirection", script: `printf 'one\ntwo\n' | cat >f`},
	{name: "tee", script: `printf 'one\ntwo\n' | tee f >/dev/null`},
	{name: "dd with fsync", script: `printf 'one\ntwo\n' | dd of=f conv=fsync bs=1M 2>/dev/null`},
	{name: "background job", script: `(echo one; sleep .05; echo two) >f & wait`},
	{name: "case 8: a child that outlives the opener's close", late: true, script: `exec 3>f; echo one >&3
		(sleep .2; echo two >&3) & exec 3>&-; wait`},
	{name: "dup and close", script: `/usr/bin/python3 -c '
import os
fd = os.open("f", os.O_WRONLY|os.O_CREAT, 0o644)
d = os.dup(fd)
os.write(fd, b"one\n"); os.close(d); d = os.dup(fd); os.close(fd); os.write(d, b"two\n"); os.close(d)'`},
	{name: "Popen, wait, close", script: `/usr/bin/python3 -c '
import subprocess
f = open("f", "w"); f.write("one\n"); f.flush()
p = subprocess.Popen(["echo", "two"], stdout=f); p.wait(); f.close()'`},
	{name: "Popen, close in the parent, wait", late: true, script: `/usr/bin/python3 -c '
import subprocess
f = open("f", "w"); f.write("one\n"); f.flush()
p = subprocess.Popen("sleep .2; echo two", shell=True, stdout=f); f.close(); p.wait()'`},
	{name: "fork in a thread, close in another", script: `/usr/bin/python3 -c '
import os, threading
fd = os.open("f", os.O_WRONLY|os.O_CREAT, 0o644)
def child():
    os.write(fd, b"one\n")
    if os.spawnlp(os.P_WAIT, "true", "true"): raise SystemExit(1)
t = threading.Thread(target=child); t.start(); t.join()
t = threading.Thread(target=lambda: (os.write(fd, b"two\n"), os.close(fd))); t.start(); t.join()'`},
}

func TestDescriptorTopologiesPublishOnceWhole(t *testing.T) {
	t.Parallel()
	const want = "one\ntwo\n"
	l := mountTwo(t, nil)
	for i, c := range topologies {
		t.Run(c.name, func(t *testing.T) {
			f := fmt.Sprintf("%s/f%d", csvDir, i)
			stop := seen(l.Window(f))
			defer stop()
			script := strings.NewReplacer(">f", ">$f", "tee f", "tee $f", "of=f", "of=$f", `"f"`, `"'$f'"`).Replace(c.script)
			l.MustSh("cd " + csvDir + fmt.Sprintf("; f=f%d\n", i) + script)
			if c.late {
				l.Eventually("published at the last close", 10*time.Second, func() bool { return listed(t, l, f) })
			}
			wantStore(t, l, f, want)
			if got := stop(); len(got) != 1 || got[0] != want {
				t.Errorf("the store showed %q, want %q once", got, want)
			}
			wantSettled(t, l)
		})
	}
}

// A child that has left the opener's family cannot be seen to hold the file:
// the opener's close publishes, and what the child writes is the next version.
func TestChildThatLeftTheFamilyWritesTheNextVersion(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	f := csvDir + "/f"
	l.MustSh(`cd ` + csvDir + `; exec 3>f; echo one >&3
		setsid -f sh -c 'until test -e ` + l.State + `/go; do sleep .02; done; echo two >&3' >/dev/null 2>&1; exec 3>&-`)
	wantStore(t, l, f, "one\n")
	writeFile(t, l.State+"/go", "")
	l.Eventually("the next version", 10*time.Second, func() bool {
		got, _ := inStore(t, l, f)
		return got == "one\ntwo\n"
	})
	wantSettled(t, l)
}

// wantTorn asserts that name is not published, and that its bytes are shown
// under both of its staging names.
func wantTorn(t *testing.T, l *mounttest.Lake, dir, base, want string) {
	t.Helper()
	wantAbsent(t, l, dir+"/"+base)
	if _, err := l.Lstat(dir + "/" + base); !os.IsNotExist(err) {
		t.Errorf("stat of %s: %v, want ENOENT: the name is free again", base, err)
	}
	var short string
	for _, n := range staged(t, l, dir) {
		if rest, ok := strings.CutPrefix(n, base+"~"); ok {
			short = rest
		}
	}
	if short == "" {
		t.Fatalf("%s is not in .lakefs/staged", base)
	}
	views := []string{dir + "/.lakefs/staged/" + base + "~" + short}
	for _, id := range spools(t, l) {
		if strings.HasPrefix(id, short) {
			views = append(views, dir+"/_temporary/.tmp."+id)
		}
	}
	if len(views) != 2 {
		t.Fatalf("no spool of %s~%s", base, short)
	}
	for _, v := range views {
		if got, err := l.ReadFile(v); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", v, brief(got), err, brief(want))
		}
		if info, err := l.Lstat(v); err != nil || info.Size() != int64(len(want)) {
			t.Errorf("stat of %s: %v, %v; want size %d", v, info, err, len(want))
		}
	}
	if listed(t, l, dir+"/_temporary") {
		t.Errorf("_temporary is listed")
	}
	if names, err := l.Names(dir + "/_temporary"); err != nil || len(names) != 0 {
		t.Errorf("_temporary lists %q, %v; want nothing", names, err)
	}
}

func TestFatalSignalsLeaveATornFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	for _, sig := range []string{"INT", "QUIT", "TERM", "KILL", "SEGV", "ABRT", "BUS"} {
		t.Run(sig, func(t *testing.T) {
			base := "f" + sig
			r := l.Sh(`ulimit -c 0; cd ` + csvDir + `; exec sh -c 'exec 3>` + base + `; echo partial >&3; kill -` + sig + ` $$; sleep 5'`)
			if r.Code != -1 {
				t.Fatalf("exit code %d, want an end by signal\n%s", r.Code, r.Err)
			}
			wantTorn(t, l, csvDir, base, "partial\n")
		})
	}
}

func TestBrokenPipeAndHangupPublish(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	for _, sig := range []string{"PIPE", "HUP"} {
		f := csvDir + "/f" + sig
		if r := l.Sh(`exec bash -c 'exec 3>` + f + `; echo whole >&3; kill -` + sig + ` $$; sleep 5'`); r.Code != -1 {
			t.Fatalf("%s: exit code %d, want an end by signal\n%s", sig, r.Code, r.Err)
		}
		wantStore(t, l, f, "whole\n")
	}
	l.MustSh(`cd ` + csvDir + `; (echo first; seq 1000000) 2>err.log | head -1`)
	l.Eventually("err.log of a broken pipe", 10*time.Second, func() bool { return listed(t, l, csvDir+"/err.log") })
}

func TestCase70NeverWrittenFileOfAKilledWriterIsPublishedEmpty(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`cd ` + csvDir + `; seq 1000000 2>err.log | head -1`)
	wantStore(t, l, csvDir+"/err.log", "")
	for _, sig := range []string{"TERM", "KILL", "INT"} {
		l.Sh(`cd ` + csvDir + `; timeout -s ` + sig + ` .2 sleep 5 2>err` + sig)
		l.Eventually("published at RELEASE", 10*time.Second, func() bool { return listed(t, l, csvDir+"/err"+sig) })
		wantStore(t, l, csvDir+"/err"+sig, "")
	}
	wantSettled(t, l)
	wantClean(t, l, csvDir, "err.log", "errTERM", "errKILL", "errINT")
}

func TestTimeoutLeavesATornFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	// timeout opened the file, lives on, and is told at its close of standard output.
	if r := l.Sh(`cd ` + csvDir + `; timeout .8 yes >f`); r.Code != 125 || !strings.Contains(r.Err, "Input/output error") {
		t.Errorf("exit code %d, %q; want timeout's 125, for its output was not published", r.Code, r.Err)
	}
	wantAbsent(t, l, csvDir+"/f")
	kept, err := l.ReadFile(wantStaged(t, l, csvDir, "f"))
	if err != nil || kept == "" || strings.Trim(kept, "y\n") != "" {
		t.Errorf("kept: %s, %v; want yes's lines", brief(kept), err)
	}
}

// A name that was torn may be written again; the torn bytes stay.
func TestTornNameIsWrittenAgain(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"old": "old\n"})
	for _, base := range []string{"new", "old"} {
		before, _ := inStore(t, l, csvDir+"/"+base)
		l.Sh(`cd ` + csvDir + `; exec sh -c 'exec 3>` + base + `; echo torn >&3; kill -KILL $$'`)
		if got, _ := inStore(t, l, csvDir+"/"+base); got != before {
			t.Errorf("%s after the kill: %q, want %q", base, got, before)
		}
		l.MustSh(`cd ` + csvDir + `; echo again >` + base + `; cat ` + base)
		wantStore(t, l, csvDir+"/"+base, "again\n")
	}
	for _, n := range staged(t, l, csvDir) {
		if got, err := l.ReadFile(csvDir + "/.lakefs/staged/" + n); err != nil || got != "torn\n" {
			t.Errorf("%s: %q, %v; want the torn bytes", n, got, err)
		}
	}
	if n := len(staged(t, l, csvDir)); n != 2 {
		t.Errorf("%d files staged, want 2", n)
	}
}

func TestOnKilledPublish(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, "--on-killed=publish")
	for _, sig := range []string{"TERM", "KILL"} {
		f := csvDir + "/log" + sig
		if r := l.Sh(`exec bash -c 'exec 3>` + f + `; echo line >&3; kill -` + sig + ` $$; sleep 5'`); r.Code != -1 {
			t.Fatalf("%s: exit code %d, want an end by signal", sig, r.Code)
		}
		l.Eventually("published", 10*time.Second, func() bool { return listed(t, l, f) })
		wantStore(t, l, f, "line\n")
	}
}

func TestCase26KilledWithAnUnfinishedParquetFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	whole := mounttest.Parquet(t, 100)
	half := whole[:len(whole)/2]
	if err := os.WriteFile(l.State+"/half", []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Sh(`cd ` + parquetDir + `; exec bash -c 'exec 3>f.parquet; cat ` + l.State + `/half >&3; kill -TERM $$; sleep 5'`)
	wantTorn(t, l, parquetDir, "f.parquet", half)
	l.Remount()
	wantTorn(t, l, parquetDir, "f.parquet", half)
}

// While a file is staged, _temporary is there for its staging name alone; it
// can be worked in all the same.
func TestTemporaryOfStagedFilesIsADirectoryToWorkIn(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`cd ` + csvDir + `; test ! -e _temporary; exec 3>f; echo x >&3; test -d _temporary; ls _temporary
		mkdir -p _temporary/0/a; echo y >_temporary/0/a/g; test -d _temporary/0/a; exec 3>&-; rm -r _temporary; cat f`)
	wantClean(t, l, csvDir, "f")
}

// A daemon that is not root sees the processes of its own user only, which are
// those that use the mount.
func TestCloseRuleAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: twoTables(nil), User: 65534})
	store := l.Window(csvDir)
	got := l.MustSh(`ulimit -c 0; cd ` + csvDir + `; exec 3>f; echo one >&3; /bin/true; test ! -e ` + store + `/f && echo two >&3; exec 3>&-; cat ` + store + `/f
		bash -c 'exec 3>torn; echo partial >&3; kill -KILL $$' 2>/dev/null; test ! -e ` + store + `/torn && cat .lakefs/staged/torn~*
		timeout .2 sleep 5 2>err; for i in $(seq 400); do test -e ` + store + `/err && break; sleep .02; done; ls`)
	if want := "one\ntwo\npartial\nerr\nf\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}
