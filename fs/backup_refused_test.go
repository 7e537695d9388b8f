package fs_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What becomes of a rename to a backup name when the new file is refused, or when
// others change the old one meanwhile. The old bytes are never lost.

// wantRefusedWrite asserts that the write of name is kept as failed, with a reason, and gives
// it up.
func wantRefusedWrite(t *testing.T, l *mounttest.Lake, name string) {
	t.Helper()
	for _, w := range stagedStatus(t, l) {
		if w.Path != name {
			continue
		}
		if w.State != "failed" || w.Error == "" {
			t.Errorf("the refused write is %+v, want failed, and why", w)
		}
		if r := l.Run("recover", "--abort="+w.ID, l.Root); r.Code != 0 {
			t.Errorf("recover --abort: exit code %d, %s%s", r.Code, r.Out, r.Err)
		}
		return
	}
	t.Errorf("no write of %s is kept", name)
}

func TestBackupAndNewFileThatMeetsAnothers(t *testing.T) {
	t.Parallel()
	for name, meets := range map[string]func(l *mounttest.Lake){
		"replaced": func(l *mounttest.Lake) { l.PutStored(csvDir+"/f", "another's\n") },
		"removed":  func(l *mounttest.Lake) { l.RemoveStored(csvDir + "/f") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, map[string]string{"f": "old\n"}, "--write=delete", neverLingers)
			wantErrno(t, "rename", rename(l, csvDir+"/f", csvDir+"/f~"), 0)
			err := writeErr(l, csvDir+"/f", syscall.O_WRONLY|syscall.O_CREAT, "new\n", func() { meets(l) })
			wantErrno(t, "close", err, syscall.ESTALE)
			wantRefusedWrite(t, l, csvDir+"/f")
			want := map[string]string{"f~": "old\n"}
			if name == "replaced" {
				want["f"] = "another's\n"
				wantContent(t, l, csvDir+"/f", want["f"])
			} else {
				wantErrno(t, "stat", statErr(l, csvDir+"/f"), syscall.ENOENT)
			}
			wantContent(t, l, csvDir+"/f~", "old\n")
			l.Remount("--write=delete")
			settledAs(t, l, want)
			wantSettled(t, l)
		})
	}
}

func TestBackupOfWhatOthersChange(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "f\n", "g": "g\n"}, "--write=delete", "--temporary-linger=2s")
	l.MustSh(`cd ` + csvDir + `; mv f f~; mv g g~`)
	l.PutStored(csvDir+"/f", "another's\n")
	l.RemoveStored(csvDir + "/g")
	settledAs(t, l, tree{"f": "another's\n", "f~": "f\n", "g~": "g\n"})
	wantSettled(t, l)
	wantContent(t, l, csvDir+"/f", "another's\n")
	wantErrno(t, "stat", statErr(l, csvDir+"/g"), syscall.ENOENT)
	wantNames(t, l, csvDir, "f", "f~", "g~")
}

func TestS3BackupAndNewFileThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{"denied": answers(403, "AccessDenied"), "down": answers(503, "ServiceUnavailable")} {
		for how, linger := range map[string]string{"lingers": lingersBriefly, "unmounted": neverLingers, "anew": neverLingers} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				l := backupLake(t, map[string]string{"f": "old"}, "--write=delete", linger)
				l.Proxy.Add(faulty.Rule{Op: "PutObject", Fault: fault})
				wantErrno(t, "rename", rename(l, "db/t/f", "db/t/f~"), 0)
				if err := l.WriteFile("db/t/f", "new"); err == nil {
					t.Error("the write succeeds")
				}
				l.Proxy.Clear()
				wantErrno(t, "stat", statErr(l, "db/t/f"), syscall.ENOENT)
				wantContent(t, l, "db/t/f~", "old")
				wantRefusedWrite(t, l, "db/t/f")
				want := []string{"f~", "warm"}
				switch how {
				case "unmounted":
					l.Unmount()
				case "anew":
					l.MustSh(`echo new >db/t/f; test ! -e db/t/f.bak; cat db/t/f~`)
					l.Unmount()
					want = []string{"f", "f~", "warm"}
				}
				l.Eventually("the rename is made", 0, func() bool { return slices.Equal(l.StoredNames("db/t"), want) })
				if got, err := l.Stored("db/t/f~"); err != nil || got != "old" {
					t.Errorf("the store has %q, %v for the backup", got, err)
				}
			})
		}
	}
}

// A new file that does not fit on the staging disk.
func TestBackupAndNewFileThatDoesNotFit(t *testing.T) {
	t.Parallel()
	l := smallStagingOf(t, "20m", mounttest.Options{Tables: twoTables(map[string]string{"f": "old\n"}), Flags: []string{"--write=delete", lingersBriefly}})
	l.MustSh(`cd ` + csvDir + `; mv f f~; ! head -c 50000000 /dev/zero >f; test ! -e f; test "$(cat f~)" = old`)
	settledAs(t, l, tree{"f~": "old\n"})
	wantContent(t, l, csvDir+"/f~", "old\n")
	wantSettled(t, l)
}

// The store takes one step of the rename and no other: it is made later, and nothing of
// the first attempt is left.
func TestS3BackupThatIsMadeAnew(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"CopyObject", "DeleteObject"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			l := backupLake(t, map[string]string{"f": "old"}, "--write=delete", lingersBriefly)
			down := answers(503, "ServiceUnavailable")
			l.Proxy.Add(faulty.Rule{Op: op, Fault: down})
			l.Proxy.Add(faulty.Rule{Op: "HeadObject", Key: l.Key("db/t/f~"), Fault: down})
			l.MustSh(`mv db/t/f db/t/f~`)
			l.WaitLog("a rename to a backup name could not be made")
			wantErrno(t, "stat", statErr(l, "db/t/f"), syscall.ENOENT)
			wantContent(t, l, "db/t/f~", "old")
			l.Proxy.Clear()
			l.Eventually("the rename is made", 0, func() bool { return slices.Equal(l.StoredNames("db/t"), []string{"f~", "warm"}) })
			l.Eventually("nothing is noted", 0, func() bool { return len(spools(t, l)) == 0 })
			wantContent(t, l, "db/t/f~", "old")
		})
	}
}

// cp and patch number their backups, as emacs may.
func TestBackupsWithNumbers(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "0\n", "g": "g\n"}, "--write=delete", neverLingers)
	watch := watchNames(l.Window(csvDir), "f")
	l.MustSh(`cd ` + csvDir + `; for i in 1 2; do echo $i >"$HOME/in"; cp --backup=t "$HOME/in" f; done; cat f.~1~; cat f.~2~`)
	names, missing := watch()
	for _, name := range []string{"f", "g", "f.~1~", "f.~2~"} {
		delete(names, name)
	}
	if missing > 0 || len(names) > 0 {
		t.Errorf("the store showed %v, and f was missing %d times", names, missing)
	}
	for _, other := range []string{"g.~x~", "g.~~", "h.~1~"} { // are no backups of g
		wantErrno(t, "rename", rename(l, csvDir+"/g", csvDir+"/"+other), 0)
		wantStore(t, l, csvDir+"/"+other, "g\n")
		wantErrno(t, "rename", rename(l, csvDir+"/"+other, csvDir+"/g"), 0)
	}
	l.Remount("--write=delete")
	settledAs(t, l, tree{"f": "2\n", "f.~1~": "0\n", "f.~2~": "1\n", "g": "g\n"})
	wantSettled(t, l)
}

// The mount is killed when the rename is made and the backup not let go of yet: what is
// kept is what the store has, and goes. Another's bytes at that name are no such thing.
func TestS3BackupThatIsKeptAndPublished(t *testing.T) {
	t.Parallel()
	l := backupLake(t, map[string]string{"f": "old", "g": "old"}, "--write=delete")
	l.MustSh(`mv db/t/f db/t/f~; mv db/t/g db/t/g~`)
	l.Kill()
	l.RemoveStored("db/t/f")
	l.PutStored("db/t/f~", "old")
	l.PutStored("db/t/g~", "OLD")
	l.Start()
	wantKeptBytes(t, l, "db/t", "g~", "old")
	wantInStore(t, l, "f~", "g", "g~", "warm")
}
