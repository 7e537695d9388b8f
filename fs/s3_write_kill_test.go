package fs_test

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// TestCase20KilledDaemonInTheMiddleOfAWriteOnS3: not listed, staged and shown;
// what another live mount has staged is not touched. Nothing is sent before the
// close: an upload that the kill meets at its very beginning is nobody's.
func TestCase20KilledDaemonInTheMiddleOfAWriteOnS3(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, nil, onePut)
	m := l.Second()
	other := begin(t, m, `exec 3>theirs.csv; echo one >&3; : >$READY; until [ -e $READY.go ]; do sleep .02; done; echo two >&3; exec 3>&-; cd /`)
	p := begin(t, l, slowWriter)
	kept := killedInTheMiddle(t, l, p)
	// What fsync did not promise may be less than was written, but is its beginning.
	if got, err := l.ReadFile(kept.shown()); err != nil || got != strings.Repeat("\x00", len(got)) || len(got) > 20<<20 {
		t.Errorf("kept are %d bytes, %v", len(got), err)
	}
	wantBucket(t, l)
	writeFile(t, strings.TrimPrefix(other.cmd.Env[len(other.cmd.Env)-1], "READY=")+".go", "")
	if code, out := other.wait(t); code != 0 {
		t.Errorf("the other mount's writer ended with %d: %s", code, out)
	}
	wantStore(t, m, csvDir+"/theirs.csv", "one\ntwo\n")
	if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
		t.Errorf("recover --abort: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
	wantBucket(t, l, "theirs.csv")
}

// TestS3FsyncedBytesSurviveAKill: what fsync returned 0 for is published, or kept.
func TestS3FsyncedBytesSurviveAKill(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"old.csv": "old\n"})
	p := begin(t, l, `/usr/bin/python3 -c '
import os, sys, time
for name, flags in ("new.csv", os.O_CREAT | os.O_WRONLY), ("old.csv", os.O_WRONLY | os.O_APPEND):
    fd = os.open(name, flags, 0o644)
    os.write(fd, b"synced\n"); os.fsync(fd); os.write(fd, b"not synced\n")
open(os.environ["READY"], "w").close()
time.sleep(1000)'`)
	l.Proxy.Add(onFile(l, "PutObject", "", faulty.Hang{}))
	l.Kill()
	p.end()
	l.Proxy.Clear()
	l.Start("--write=delete")
	for name, content := range map[string]string{"new.csv": "synced\n", "old.csv": "old\nsynced\n"} {
		wantStore(t, l, csvDir+"/"+name, content)
		wantContent(t, l, csvDir+"/"+name, content)
	}
	wantBucket(t, l, "new.csv", "old.csv")
}
