package fs_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const spoolBlock = 128 << 10 // in which a staged file takes over old bytes

// changeInPart writes into the middle of csvDir/name, behind its end, and has it
// replaced (removed, where theirs is empty) before the close, which answers ESTALE.
// It returns what can be had of that.
func changeInPart(t *testing.T, l *mounttest.Lake, name, old, theirs string) (own string) {
	t.Helper()
	file := csvDir + "/" + name
	err := l.Do("change "+file, func() error {
		return mounttest.NoFork(func() error {
			fd, err := syscall.Open(l.Path(file), syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			_, first := syscall.Pwrite(fd, []byte("mine"), spoolBlock+5)
			_, second := syscall.Pwrite(fd, []byte("behind"), int64(len(old)))
			if theirs == "" {
				l.RemoveStored(file)
			} else {
				l.PutStored(file, theirs)
			}
			return errors.Join(first, second, syscall.Close(fd))
		})
	})
	wantErrno(t, "close of "+name, err, syscall.ESTALE)
	block := []byte(old[spoolBlock : 2*spoolBlock])
	copy(block[5:], "mine")
	end := len(old) / spoolBlock * spoolBlock
	return strings.Repeat("\x00", spoolBlock) + string(block) + strings.Repeat("\x00", end-2*spoolBlock) + old[end:] + "behind"
}

// TestS3RecoverSavesWhatIsLeft: of a file whose older version is gone what was written
// can be had, under a name that says what it is; of the others all.
func TestS3RecoverSavesWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			t.Parallel()
			old, theirs := numbered('o', 3<<20), numbered('t', 3<<20)
			l := mounttest.Mount(t, mounttest.Options{S3: true, Tables: twoTables(map[string]string{"replaced": old, "removed": old, "f": "short\n"})})
			want := tree{
				"replaced.partial": changeInPart(t, l, "replaced", old, theirs),
				"removed.partial":  changeInPart(t, l, "removed", old, ""),
				"f":                "mine\n",
			}
			wantErrno(t, "close of f", writeErr(l, csvDir+"/f", trunc, "mine\n", func() { l.PutStored(csvDir+"/f", "theirs\n") }), syscall.ESTALE)
			if running {
				wantPartialView(t, l, "replaced", want["replaced.partial"])
			}
			r := recovererOf(t, l, running)
			dir := t.TempDir()
			res := r.run(0, "--save", dir)
			if got := readTree(t, dir); !got.equal(want) {
				for name, content := range got {
					t.Errorf("saved is %s: %s, as it should be: %v", name, brief(content), content == want[name])
				}
			}
			ranges := fmt.Sprintf("there are the bytes %d-%d, %d-%d (what was written, in blocks of 128 KiB), the rest of the %d is zeros",
				spoolBlock, 2*spoolBlock-1, len(old)/spoolBlock*spoolBlock, len(old)+5, len(old)+6)
			for name := range want {
				base, partial := strings.CutSuffix(name, ".partial")
				line := lineWith(res.Out, csvDir+"/"+base)
				if !strings.Contains(line, "/"+name+": ") || partial != strings.Contains(line, "saved in part as ") ||
					partial != strings.Contains(line, "the version that it changed is gone: "+ranges) {
					t.Errorf("of %s recover prints %q", base, line)
				}
			}
			r.run(0, "--save", dir) // beside the others
			saved := readTree(t, dir)
			if res := r.run(1, "--save", dir); strings.Count(res.Err, "exists") != 3 || !readTree(t, dir).equal(saved) || len(saved) != 2*len(want) {
				t.Errorf("saving over files: %q; there are %d files", res.Err, len(saved))
			}
			r.run(0, "--abort=all")
		})
	}
}

// wantPartialView asserts what the name of a kept file leads to that it is read by
// without its older version: it is found, and not listed.
func wantPartialView(t *testing.T, l *mounttest.Lake, name, want string) {
	t.Helper()
	for _, w := range stagedStatus(t, l) {
		if path.Base(w.Path) != name {
			continue
		}
		if _, err := l.ReadFile(w.shown()); !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%s is read whole: %v, want ESTALE", name, err)
		}
		wantContent(t, l, w.shown()+".partial", want)
		wantErrno(t, "unlink", unlink(l, w.shown()+".partial"), syscall.ENOENT)
		wantErrno(t, "open to write", openErr(l, w.shown()+".partial", syscall.O_WRONLY), syscall.EPERM)
	}
	for _, n := range staged(t, l, csvDir) {
		if strings.HasSuffix(n, ".partial") {
			t.Errorf("%s is listed", n)
		}
	}
}

// lineWith is the line of out that has text.
func lineWith(out, text string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"`+text+`"`) {
			return line
		}
	}
	return ""
}

// TestRecoverSavesAnOpenFile as far as it is written, and says that it is not done.
func TestRecoverSavesAnOpenFile(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	tear(t, l, "torn.csv", "10")
	dir := t.TempDir()
	out := l.MustSh(`cd ` + csvDir + `; exec 3>open.csv; echo half >&3
		` + l.Binary() + ` recover --save ` + dir + ` ` + l.Root + `; echo more >&3; exec 3>&-`)
	const said = "which is still being written"
	if line := lineWith(out, csvDir+"/open.csv"); !strings.Contains(line, "saved as ") || !strings.Contains(line, said) {
		t.Errorf("of an open file recover prints %q", line)
	}
	if line := lineWith(out, csvDir+"/torn.csv"); !strings.Contains(line, "saved as ") || strings.Contains(line, said) {
		t.Errorf("of a torn file recover prints %q", line)
	}
	if got := readTree(t, dir)["open.csv"]; got != "half\n" {
		t.Errorf("saved is %q", got)
	}
	wantStore(t, l, csvDir+"/open.csv", "half\nmore\n")
}
