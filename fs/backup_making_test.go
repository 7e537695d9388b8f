package fs_test

import (
	"errors"
	"os/exec"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// makeBackup is a lake in which the wait of db/t/f~ is over: the store has been asked for
// the copy, and does not answer before Proxy.Release.
func makeBackup(t *testing.T) *mounttest.Lake {
	t.Helper()
	l := backupLake(t, map[string]string{"f": "old\n"}, "--write=delete", "--temporary-linger=300ms", "--io-timeout=1m")
	copying := hang(l, "CopyObject")
	l.MustSh(`mv db/t/f db/t/f~`)
	copying.Wait(t, 1)
	return l
}

// hang has the store not answer the next request of an operation on db/t/f~.
func hang(l *mounttest.Lake, op string) *faulty.Active {
	return l.Proxy.Add(faulty.Rule{Op: op, Key: l.Key("db/t/f~"), Times: 1, Fault: faulty.Hang{}})
}

// What is written to a backup, and closed, while its rename is being made is what every
// program reads from then on, whatever name the file gets next.
func TestS3BackupWrittenWhileItsRenameIsMade(t *testing.T) {
	t.Parallel()
	const back = `mv db/t/f~ db/t/f`
	for name, c := range map[string]struct {
		write, want string // of f~
		next        string
		stored      []string // by then; the first one is the file's name
	}{
		"append":             {`echo y >>db/t/f~`, "old\ny\n", back, []string{"f", "warm"}},
		"append twice":       {`echo y >>db/t/f~; echo z >>db/t/f~`, "old\ny\nz\n", back, []string{"f", "warm"}},
		"truncate":           {`truncate -s 2 db/t/f~`, "ol", back, []string{"f", "warm"}},
		"overwrite":          {`echo new >db/t/f~`, "new\n", back, []string{"f", "warm"}},
		"a part of it":       {`printf X | dd of=db/t/f~ conv=notrunc status=none`, "Xld\n", back, []string{"f", "warm"}},
		"while it is read":   {`exec 3<db/t/f~; echo y >>db/t/f~`, "old\ny\n", back, []string{"f", "warm"}},
		"renamed elsewhere":  {`echo y >>db/t/f~`, "old\ny\n", `mv db/t/f~ db/t/g`, []string{"g", "warm"}},
		"renamed twice":      {`echo y >>db/t/f~`, "old\ny\n", back + `; mv db/t/f db/t/h`, []string{"h", "warm"}},
		"a new file":         {`echo y >>db/t/f~`, "old\ny\n", `echo new >db/t/f`, []string{"f~", "f", "warm"}},
		"renamed over":       {`echo y >>db/t/f~`, "old\ny\n", `mv db/t/warm db/t/f~; mv db/t/f~ db/t/warm`, []string{"warm"}},
		"removed":            {`echo y >>db/t/f~`, "old\ny\n", `rm db/t/f~`, []string{"warm"}},
		"appended to again":  {`echo y >>db/t/f~`, "old\ny\n", `:`, []string{"f~", "warm"}},
		"truncated to none":  {`truncate -s 0 db/t/f~`, "", back, []string{"f", "warm"}},
		"opened for writing": {`exec 3<>db/t/f~; echo y >>db/t/f~; exec 3>&-`, "old\ny\n", back, []string{"f", "warm"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := makeBackup(t)
			putting := hang(l, "PutObject")
			l.MustSh(c.write)
			wantContent(t, l, "db/t/f~", c.want)
			l.Proxy.Release()
			putting.Wait(t, 1)
			wantContent(t, l, "db/t/f~", c.want)
			if names := l.MustSh(`ls db/t`); names != "f~\nwarm\n" {
				t.Errorf("listed are %q", names)
			}
			next := make(chan mounttest.Result, 1)
			go func() { next <- l.Sh(c.next) }()
			l.Proxy.Release()
			if r := <-next; r.Code != 0 {
				t.Fatalf("%s: %s", c.next, r.Err)
			}
			if file := c.stored[0]; file != "warm" {
				wantContent(t, l, "db/t/"+file, c.want)
			}
			stored := slices.Sorted(slices.Values(c.stored))
			l.Eventually("the store has the names", 0, func() bool { return slices.Equal(l.StoredNames("db/t"), stored) })
			l.Eventually("nothing is staged", 0, func() bool { return len(spools(t, l)) == 0 })
			if c.stored[0] != "warm" {
				wantStore(t, l, "db/t/"+c.stored[0], c.want)
			}
		})
	}
}

// What is set on it meanwhile is kept, and a descriptor that is open for longer goes on.
func TestS3BackupUsedWhileItsRenameIsMade(t *testing.T) {
	t.Parallel()
	l := makeBackup(t)
	w := exec.CommandContext(t.Context(), "bash", "-c", `exec 3>>"$0"; echo; read; echo y >&3; exec 3>&-`, l.Path("db/t/f~"))
	stdin, errIn := w.StdinPipe()
	stdout, errOut := w.StdoutPipe()
	if err := errors.Join(errIn, errOut, w.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	l.MustSh(`chmod 604 db/t/f~; touch -d 2001-02-03 db/t/f~`)
	l.Proxy.Release()
	l.Eventually("the store has the name", 0, func() bool { return slices.Equal(l.StoredNames("db/t"), []string{"f~", "warm"}) })
	l.MustSh(`mv db/t/f~ db/t/f`)
	wantContent(t, l, "db/t/f", "old\n")
	if err := errors.Join(stdin.Close(), w.Wait()); err != nil {
		t.Fatal(err)
	}
	wantContent(t, l, "db/t/f", "old\ny\n")
	if got := l.MustSh(`stat -c '%a' db/t/f`); got != "604\n" {
		t.Errorf("mode %s, want 604", got)
	}
	l.Eventually("nothing is staged", 0, func() bool { return len(spools(t, l)) == 0 })
	wantInStore(t, l, "f", "warm")
}

// What is set on a backup that nobody writes to, while its rename is being made, is kept.
func TestS3BackupSetWhileItsRenameIsMade(t *testing.T) {
	t.Parallel()
	l := makeBackup(t)
	l.MustSh(`chmod 604 db/t/f~; touch -d 2001-02-03 db/t/f~`)
	want := l.MustSh(`stat -c '%i %Y %a %s' db/t/f~`)
	l.Proxy.Release()
	l.Eventually("nothing is staged", 0, func() bool { return len(spools(t, l)) == 0 })
	l.MustSh(`mv db/t/f~ db/t/f`)
	if got := l.MustSh(`stat -c '%i %Y %a %s' db/t/f`); got != want {
		t.Errorf("the file is %q, the backup was %q", got, want)
	}
	wantInStore(t, l, "f", "warm")
}
