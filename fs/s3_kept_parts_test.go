package fs_test

import (
	"encoding/json"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What is shown of a file whose parts go up, and what becomes of them when it is
// dropped.

// TestS3AnUploadIsShownWhileItIsWritten: size so far, what the store has, and that a
// program has it open; in the store there is no file.
func TestS3AnUploadIsShownWhileItIsWritten(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	content := numbered('s', bigFile)
	w := pause(t, l, "f", creat, content)
	bothThere(t, l)
	all := stagedStatus(t, l)
	want := stagedWrite{ID: all[0].ID, Path: csvDir + "/f", State: "staged", Open: true, Size: headSize, Uploaded: 10 << 20}
	if len(all) != 1 || all[0] != want {
		t.Errorf("status.json has %+v, want %+v", all, want)
	}
	shown := wantStaged(t, l, csvDir, "f")
	if size := stat(t, l, shown).Size; size != headSize {
		t.Errorf("%s has %d bytes, want %d so far", shown, size, headSize)
	}
	for _, args := range [][]string{{"status", l.Root}, {"recover", l.Root}} {
		r := l.Run(args...)
		for _, part := range []string{want.ID, "staged, open", "12.0 MiB", "10.0 MiB", `"` + want.Path + `"`} {
			if !strings.Contains(r.Out, part) {
				t.Errorf("%s prints\n%swhich lacks %q", args[0], r.Out, part)
			}
		}
	}
	wantAbsent(t, l, csvDir+"/f")
	w.ends(t)
	wantStore(t, l, csvDir+"/f", content)
	wantNothingLeft(t, l, "f")
}

// bothThere waits until the store has all whole parts of the head of csvDir/f.
func bothThere(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	l.Eventually("both whole parts are there", seenWithin, func() bool { return uploadedOf(t, l, "f") == 10<<20 })
}

// tornParts is a lake with a file whose writer was killed while its parts went up.
func tornParts(t *testing.T, flags ...string) *mounttest.Lake {
	t.Helper()
	l := partsTwo(t, nil, flags...)
	w := pause(t, l, "f", creat, numbered('k', bigFile))
	w.end()
	l.Eventually("it is torn", seenWithin, func() bool {
		all := stagedStatus(t, l)
		return len(all) == 0 || all[0].State == "torn" && !all[0].Open
	})
	return l
}

// TestS3StagedKeepFreesTheUpload of what it drops, while mounted.
func TestS3StagedKeepFreesTheUpload(t *testing.T) {
	t.Parallel()
	l := tornParts(t, "--staged-keep=3s")
	l.WaitLog("dropped a staged write")
	if !strings.Contains(l.Log(), `path="`+csvDir+`/f"`) {
		t.Error("the log does not name the file that was dropped")
	}
	wantNothingLeft(t, l)
}

// TestS3AbortIsTriedAgain: what the store does not free at once is counted, and freed
// by the next mount.
func TestS3AbortIsTriedAgain(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil, "--io-timeout=1s")
	w := pause(t, l, "f", creat, numbered('q', bigFile))
	refused := l.Proxy.Add(onFile(l, "AbortMultipartUpload", "", answers(503, "SlowDown")))
	wantErrno(t, "unlink", unlink(l, csvDir+"/f"), 0)
	w.ends(t)
	refused.Wait(t, 1)
	l.Eventually("it is counted", seenWithin, func() bool { return abortingOf(t, l) == 1 })
	if all := stagedStatus(t, l); len(all) > 0 {
		t.Errorf("status.json shows %+v, want a count alone", all)
	}
	const said = "Of 1 file that was dropped the store has parts yet"
	if r := l.Run("recover", l.Root); !strings.Contains(r.Out, said) || !strings.Contains(r.Out, "Nothing is unpublished") {
		t.Errorf("recover prints %q, want %q", r.Out, said)
	}
	l.Kill()
	if r := l.Run("recover", "--state-dir="+l.State, l.Source, l.Root); !strings.Contains(r.Out, said) {
		t.Errorf("after the mount recover prints %q, want %q", r.Out, said)
	}
	if server, bucket := l.Bucket(); len(server.Uploads(t, bucket)) != 1 {
		t.Errorf("the store has the uploads %q, want one", server.Uploads(t, bucket))
	}
	l.Proxy.Clear()
	l.Start()
	wantNothingLeft(t, l)
	if n := abortingOf(t, l); n != 0 {
		t.Errorf("%d uploads are counted, want none", n)
	}
}

func abortingOf(t *testing.T, l *mounttest.Lake) int {
	t.Helper()
	raw, err := l.ReadFile(".lakefs/status.json")
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Aborting int `json:"aborting"`
	}
	if err := json.Unmarshal([]byte(raw), &status); err != nil {
		t.Fatal(err)
	}
	return status.Aborting
}

// TestS3RecoverAfterTheMountFreesTheUpload of what it drops, and publishes what it is
// asked to, in parts.
func TestS3RecoverAfterTheMountFreesTheUpload(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--abort=all", "--publish=all"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, nil)
			w := pause(t, l, "f", creat, numbered('k', bigFile))
			bothThere(t, l) // a part that is under way can outlive an abort
			l.Kill()
			w.end()
			r := &recoverer{t: t, l: l, args: []string{"recover", "--state-dir=" + l.State, "--part-size=5MiB", l.Source, l.Root}}
			if got := r.list()["f"]; got.State != "staged" || got.Size != headSize || path.Dir(got.Path) != csvDir {
				t.Errorf("listed is %+v, want a staged file of %d bytes", got, headSize)
			}
			r.run(0, flag)
			server, bucket := l.Bucket()
			if uploads := server.Uploads(t, bucket); len(uploads) > 0 {
				t.Errorf("uploads are left: %q", uploads)
			}
			l.Start()
			if flag == "--abort=all" {
				wantNothingLeft(t, l)
				return
			}
			wantStore(t, l, csvDir+"/f", numbered('k', headSize))
			wantNothingLeft(t, l, "f")
		})
	}
}

// TestS3TornWhilePartsGoUp is published by recover, whole as far as it was written.
func TestS3TornWhilePartsGoUp(t *testing.T) {
	t.Parallel()
	l := tornParts(t)
	wantAbsent(t, l, csvDir+"/f")
	wantErrno(t, "open of the torn name", openErr(l, csvDir+"/f", syscall.O_RDONLY), syscall.ENOENT)
	wantPublishedLater(t, l, "f", numbered('k', headSize))
}
