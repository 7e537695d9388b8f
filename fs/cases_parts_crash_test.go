package fs_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Ends of the mount, of the writer and of the connection while parts are up.

// TestCase19TermWhileAPartHangsOnS3: nothing was ever complete in the store. The
// exit code is not zero, what is unpublished is named, and the next mount leaves
// the file whole or absent.
func TestCase19TermWhileAPartHangsOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil, "--io-timeout=60s")
	held := l.Proxy.Add(onFile(l, "UploadPart", "big.csv", faulty.Hang{}))
	p := begin(t, l, `: >$READY; cp `+largeIn(t, "")+` big.csv; echo "cp $?"; cd /`)
	held.Wait(t, 1)
	l.Eventually("all is written", 0, func() bool {
		all := stagedStatus(t, l)
		return len(all) == 1 && all[0].Size == int64(len(fourParts()))
	})
	terminate(l, 2)
	if code := l.Wait(); code != 1 {
		t.Errorf("the daemon ended with %d, want 1", code)
	}
	if !strings.Contains(l.Log(), "big.csv") {
		t.Error("the log does not name what is unpublished")
	}
	if _, out := p.wait(t); strings.HasSuffix(out, "cp 0\n") {
		t.Errorf("the writer says %q, want a failure", out)
	}
	wantAbsentInStore(t, l, csvDir+"/big.csv")
	l.Proxy.Clear()
	l.Start()
	if !wantWholeOrAbsent(t, l, csvDir+"/big.csv", int64(len(fourParts()))) {
		wantContent(t, l, wantStaged(t, l, csvDir, "big.csv"), fourParts())
	}
	wantNoUpload(t, l, l.StoredNames(csvDir)...)
}

// wantAbsentInStore is wantAbsent of a lake that is not mounted.
func wantAbsentInStore(t *testing.T, l *mounttest.Lake, name string) {
	t.Helper()
	if got, there := inStore(t, l, name); there {
		t.Errorf("%s is in the store: %s", name, brief(got))
	}
}

// TestCase20KilledDaemonWhilePartsAreUpOnS3: not listed, staged and shown, its
// upload given up; what another live mount has staged, and has sent, is not touched.
func TestCase20KilledDaemonWhilePartsAreUpOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	m := l.Second(ofParts, "--write=delete")
	file := largeIn(t, "")
	other := begin(t, m, `exec 3>theirs.csv; cat `+file+` >&3; : >$READY; until [ -e $READY.go ]; do sleep .02; done; echo end >&3; exec 3>&-; cd /`)
	p := begin(t, l, `exec 3>big.csv; cat `+file+` >&3; : >$READY; sleep 1000`)
	partsUp(l, "big.csv", 3)
	theirs := []string{l.Key(csvDir + "/theirs.csv")}
	l.Eventually("two uploads", 0, func() bool { return len(uploadsOf(t, l)) == 2 })
	kept := killed(t, l, p)
	wantContent(t, l, kept.shown(), fourParts()) // the kernel had it: only the daemon was killed
	l.Eventually("its own upload is given up", seenWithin, func() bool { return slices.Equal(uploadsOf(t, l), theirs) })
	if all := stagedStatus(t, m); len(all) != 1 || all[0].Path != csvDir+"/theirs.csv" || !all[0].Open {
		t.Errorf("the other mount has %+v staged, want theirs.csv", all)
	}
	other.goOn(t)
	if code, out := other.wait(t); code != 0 {
		t.Errorf("the other mount's writer ended with %d: %s", code, out)
	}
	wantStore(t, m, csvDir+"/theirs.csv", fourParts()+"end\n")
	if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
		t.Errorf("recover --abort: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
	wantClean(t, l, csvDir, "theirs.csv")
	wantNoUpload(t, l, "theirs.csv")
}

// TestCase21LostAnswersOfUploadsOnS3: the program sees a success, and the store one
// version. An upload whose beginning was not answered is nobody's, and stays.
func TestCase21LostAnswersOfUploadsOnS3(t *testing.T) {
	const appending = `printf more | dd of=old oflag=append conv=notrunc status=none`
	for what, c := range map[string]struct {
		op, name, script string
		after            string
	}{
		"the beginning of a new file":  {"CreateMultipartUpload", "new", `cp $L new`, fourParts()},
		"a part of a new file":         {"UploadPart", "new", `cp $L new`, fourParts()},
		"the completion of a new file": {"CompleteMultipartUpload", "new", `cp $L new`, fourParts()},
		"the completion at an fsync":   {"CompleteMultipartUpload", "new", `dd if=$L of=new bs=1M conv=fsync status=none`, fourParts()},
		"the completion of another":    {"CompleteMultipartUpload", "old", `cp $L old`, fourParts()},
		"the completion of an append":  {"CompleteMultipartUpload", "old", appending, fourParts()[:3*partSize] + "more"},
		"a copied part of an append":   {"UploadPartCopy", "old", appending, fourParts()[:3*partSize] + "more"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			old := fourParts()[:3*partSize]
			l := partsTwo(t, map[string]string{"old": old})
			rule := onFile(l, c.op, c.name, faulty.LoseAnswer{})
			rule.Times = 1
			lost := l.Proxy.Add(rule)
			l.MustSh(`L=` + largeIn(t, "") + `; cd ` + csvDir + `; ` + c.script)
			if lost.Hits() != 1 {
				t.Fatalf("%d answers were lost, want one\n%s", lost.Hits(), asked(l))
			}
			wantStore(t, l, csvDir+"/"+c.name, c.after)
			wantContent(t, l, csvDir+"/"+c.name, c.after)
			versions := taken(l, "CompleteMultipartUpload", c.name) + taken(l, "PutObject", c.name)
			if c.op == "CompleteMultipartUpload" {
				versions++ // the lost one
			}
			if versions != 1 {
				t.Errorf("published %d times, want once\n%s", versions, asked(l))
			}
			names := []string{"old"}
			if c.name == "new" {
				names = append(names, "new")
				wantStore(t, l, csvDir+"/old", old)
			}
			wantClean(t, l, csvDir, names...)
			if c.op == "CreateMultipartUpload" {
				if uploads := uploadsOf(t, l); len(uploads) > 1 {
					t.Errorf("uploads are left: %q", uploads)
				}
			} else {
				wantNoUpload(t, l, names...)
			}
			if log := l.Log(); strings.Contains(log, "level=ERROR") {
				t.Error("an error was logged")
			}
		})
	}
}

// TestCase26KilledWriterWhilePartsAreUpOnS3: nothing is published; kept, and shown,
// over a remount.
func TestCase26KilledWriterWhilePartsAreUpOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	half := "PAR1" + fourParts()[:3*partSize]
	file := largeIn(t, half)
	for dir, name := range map[string]string{csvDir: "torn.csv", parquetDir: "torn.parquet"} {
		p := begin(t, l, `cd `+l.Path(dir)+`; exec 3>`+name+`; cat `+file+` >&3; : >$READY; exec sleep 1000`)
		partsUp(l, name, 3)
		if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code, _ := p.wait(t); code != -1 {
			t.Errorf("the writer ended with %d, want an end by signal", code)
		}
		wantTorn(t, l, dir, name, half)
	}
	for range 2 {
		wantNoUpload(t, l)
		wantTorn(t, l, csvDir, "torn.csv", half)
		wantTorn(t, l, parquetDir, "torn.parquet", half)
		l.Remount()
	}
	whole := mounttest.Parquet(t, 100)
	write(t, l, parquetDir+"/torn.parquet", whole) // the name is free
	wantStore(t, l, parquetDir+"/torn.parquet", whole)
}
