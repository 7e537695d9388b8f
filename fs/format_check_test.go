package fs_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// damagedParquet are files that are no Parquet, by base name.
func damagedParquet(t *testing.T) map[string]string {
	t.Helper()
	whole := mounttest.Parquet(t, 10)
	claims := []byte(whole)
	binary.LittleEndian.PutUint32(claims[len(claims)-8:], 2<<30)
	return map[string]string{
		"text": "id,name\n", "magic": "PAR1", "magics": "PAR1PAR1", "cut": whole[:len(whole)-1], "half": whole[:len(whole)/2], "2GiB": string(claims),
		"nofooter": "PAR1\x00\x00\x00\x00PAR1", "headless": whole[4:], "more": whole + "\n", "hole": strings.Repeat("\x00", len(whole)-8) + whole[len(whole)-8:],
	}
}

// TestFormatCheckLevels: strict keeps and shows what is damaged, with the reason; warn
// publishes it and says so once; off does not look.
func TestFormatCheckLevels(t *testing.T) {
	t.Parallel()
	damaged, whole := damagedParquet(t), mounttest.Parquet(t, 10)
	for _, level := range []string{"strict", "warn", "off"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, nil, "--check-format="+level)
			wantErrno(t, "a whole file", writeErr(l, parquetDir+"/whole", creat, whole, nil), 0)
			for base, content := range damaged {
				want := syscall.Errno(0)
				if level == "strict" {
					want = syscall.EBADMSG
				}
				wantErrno(t, "close of "+base, writeErr(l, parquetDir+"/"+base, creat, content, nil), want)
				if level != "strict" {
					wantStore(t, l, parquetDir+"/"+base, content)
				} else {
					wantAbsent(t, l, parquetDir+"/"+base)
				}
			}
			wantErrno(t, "an empty file", writeErr(l, parquetDir+"/empty", creat, "", nil), 0)
			if _, there := inStore(t, l, parquetDir+"/empty"); there != (level == "off") && level != "warn" {
				t.Errorf("the empty file is published: %v", there)
			}
			wantStore(t, l, parquetDir+"/whole", whole)
			wantVerdicts(t, l, level, damaged)
		})
	}
}

// wantVerdicts asserts what is kept, shown and logged of damaged files.
func wantVerdicts(t *testing.T, l *mounttest.Lake, level string, damaged map[string]string) {
	t.Helper()
	failed := map[string]stagedWrite{}
	for _, w := range stagedStatus(t, l) {
		if w.State == "failed" {
			failed[path.Base(w.Path)] = w
		}
	}
	if level != "strict" && len(failed) > 0 || level == "strict" && len(failed) != len(damaged) {
		t.Errorf("failed are %+v", failed)
	}
	for base, content := range damaged {
		switch level {
		case "strict":
			w := failed[base]
			if !strings.Contains(w.Error, "not a complete parquet file: ") || !strings.Contains(w.Error, "write it again") || w.Open {
				t.Errorf("status.json has %+v of %s", w, base)
			}
			wantContent(t, l, w.shown(), content)
			wantLogged(t, l, parquetDir+"/"+base+`"`)
		case "warn":
			line := `path="` + parquetDir + "/" + base + `" `
			l.WaitLog(line)
			if n := strings.Count(l.Log(), line); n != 1 {
				t.Errorf("%s is warned of %d times", base, n)
			}
		case "off":
			if strings.Contains(l.Log(), parquetDir+"/"+base) {
				t.Errorf("%s is logged", base)
			}
		}
	}
}

// TestFormatCheckOfEachWay: whichever way bytes get under a name, they are looked at
// before they are published, and what was there stays.
func TestFormatCheckOfEachWay(t *testing.T) {
	t.Parallel()
	whole := mounttest.Parquet(t, 10)
	l := mountTwo(t, map[string]string{"text": "1,2\n", "whole": whole}, "--write=delete")
	name := l.Path(parquetDir + "/f.parquet")
	for what, script := range map[string]string{
		"append":               `printf x >> f.parquet`,
		"change in the middle": `printf x | dd of=f.parquet bs=1 conv=notrunc`,
		"truncate":             `truncate -s -1 f.parquet`,
		"truncate of a copy":   `cp f.parquet _f; truncate -s 20 _f; mv _f f.parquet`,
		"copy_file_range":      `cp --reflink=never ` + l.Path(csvDir) + `/text f.parquet`,
		"mv":                   `mv ` + l.Path(csvDir) + `/text f.parquet`,
		"mv of a hidden file":  `echo text > .f; mv .f f.parquet`,
		"of a descriptor":      `exec 3>_g; echo text >&3; mv _g f.parquet; exec 3>&- || exit 7`,
		"O_TRUNC":              `echo text > f.parquet`,
	} {
		wantErrno(t, "write", writeErr(l, parquetDir+"/f.parquet", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, whole, nil), 0)
		if r := l.Sh(`cd ` + parquetDir + ` && ` + script); !strings.Contains(r.Err, "Bad message") && !strings.Contains(script, ">") { // the shell tells of no close
			t.Errorf("%s: code %d, %q", what, r.Code, r.Err)
		}
		wantStore(t, l, parquetDir+"/f.parquet", whole)
		l.MustSh(`cd ` + parquetDir + `; rm -f _* .[fg] .lakefs/staged/*`)
	}
	if _, there := inStore(t, l, csvDir+"/text"); !there {
		t.Error("mv that failed removed the file")
	}
	// fsync makes durable what is not whole yet, and logs nothing.
	l.MustSh(`python3 -c '
import errno, os
f = os.open("` + name + `.new", os.O_WRONLY | os.O_CREAT)
os.write(f, b"PAR1 half")
os.fsync(f)
try:
    os.close(f)
    raise SystemExit("closed")
except OSError as e:
    assert e.errno == errno.EBADMSG, e
'`)
	wantLogged(t, l, parquetDir+"/f.parquet.new")
	wantContent(t, l, wantStaged(t, l, parquetDir, "f.parquet.new"), "PAR1 half")
}

// TestFormatCheckOfRecovered: recover publishes what is whole, and of what is not says
// so again; with --check-format=off it is published.
func TestFormatCheckOfRecovered(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, nil)
			wantErrno(t, "close", writeErr(l, parquetDir+"/f", creat, "text", nil), syscall.EBADMSG)
			r := recovererOf(t, l, running)
			id := r.list()["f"].ID
			if res := r.run(1, "--publish", id); !strings.Contains(res.Err, "partition's format") && !strings.Contains(res.Err, "not a complete parquet file") && !strings.Contains(res.Err, "Bad message") {
				t.Errorf("recover --publish says %q", res.Err)
			}
			if w := r.list()["f"]; w.State != "failed" || !strings.Contains(w.Error, "not a complete parquet file") {
				t.Errorf("kept is %+v", w)
			}
			dir := t.TempDir()
			r.run(0, "--save", dir)
			if saved, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(saved) != "text" {
				t.Errorf("saved %q, %v", saved, err)
			}
			if !running {
				r.run(0, "--check-format=off", "--publish", id)
				l.Start()
				wantStore(t, l, parquetDir+"/f", "text")
			}
		})
	}
}

// TestFormatCheckByName: names that tell of compression are held to it, of new files,
// of renamed ones whether they are published or not, and of those only that need it.
func TestFormatCheckByName(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Flags: []string{"--write=delete"}, Tables: []mounttest.Table{
		{Database: "db", Name: "c", Format: "csv"}, {Database: "db", Name: "j", Format: "json"},
	}})
	const gzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for _, dir := range []string{"db/c/", "db/j/"} {
		row := map[string]string{"db/c/": "1,x\n", "db/j/": "{\"a\":1}\n"}[dir]
		wantErrno(t, "text under a name of gzip", writeErr(l, dir+"x.gz", creat, row, nil), syscall.EBADMSG)
		wantErrno(t, "text", writeErr(l, dir+"a", creat, row, nil), 0)
		wantErrno(t, "gzip", writeErr(l, dir+"z.gz", creat, gzip, nil), 0)
		wantErrno(t, "rename of text to a name of gzip", rename(l, dir+"a", dir+"a.gz"), syscall.EBADMSG)
		wantErrno(t, "rename of text", rename(l, dir+"a", dir+"a.csv"), 0)
		wantErrno(t, "rename of gzip to a name of zstd", rename(l, dir+"z.gz", dir+"z.zst"), syscall.EBADMSG)
		wantErrno(t, "rename of gzip", rename(l, dir+"z.gz", dir+"y.gz"), 0)
		wantErrno(t, "to a hidden name", rename(l, dir+"a.csv", dir+"_a.gz"), 0)
		wantErrno(t, "and back under a name of gzip", rename(l, dir+"_a.gz", dir+"a.gz"), syscall.EBADMSG)
		wantErrno(t, "and back", rename(l, dir+"_a.gz", dir+"a"), 0)
		// One that is being written is looked at when it is published.
		if r := l.Sh(`cd ` + dir + `; exec 3>o; printf '` + strings.ReplaceAll(row, "\n", `\n`) + `' >&3; mv o o.gz; exec 3>&-; ls .lakefs/staged`); !strings.Contains(r.Out, "o.gz~") {
			t.Errorf("an open file renamed: %+v", r)
		}
		wantAbsent(t, l, dir+"o.gz")
		wantStore(t, l, dir+"a", row)
		wantErrno(t, "an empty file", writeErr(l, dir+"e.gz", creat, "", nil), 0)
		l.MustSh(`cd ` + dir + `; gzip -k a; mv a.gz b.gz; gunzip b.gz; cmp a b`)
	}
	wantErrno(t, "gzip under a name of JSON", rename(l, "db/j/y.gz", "db/j/y.json"), syscall.EBADMSG)
	wantErrno(t, "gzip under a name of text", rename(l, "db/c/y.gz", "db/c/y.csv"), 0)
	l.Remount("--write=delete", "--check-format=off")
	wantErrno(t, "rename without a check", rename(l, "db/j/a", "db/j/q.gz"), 0)
	l.Remount("--write=delete", "--check-format=warn")
	wantErrno(t, "rename that is warned of", rename(l, "db/j/q.gz", "db/j/q.zst"), 0)
	l.WaitLog("renamed although the format check fails")
}

// TestFormatCheckReadsTheFooterAlone: of a file of 1 GiB the daemon reads little.
func TestFormatCheckReadsTheFooterAlone(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "a bucket gets all bytes")
	l := mountTwo(t, nil)
	whole := mounttest.Parquet(t, 10)
	const size = 1 << 30
	tail := len(whole) - 8 - int(binary.LittleEndian.Uint32([]byte(whole[len(whole)-8:])))
	for base, want := range map[string]syscall.Errno{"good": 0, "bad": syscall.EBADMSG} {
		footer := whole[tail:]
		if want != 0 {
			footer = footer[:len(footer)-1] + "2"
		}
		before := readBytes(t, l)
		err := l.Do("write", func() error {
			return mounttest.NoFork(func() error {
				fd, err := syscall.Open(l.Path(parquetDir+"/"+base), creat|syscall.O_CLOEXEC, 0o644)
				if err != nil {
					return err
				}
				_, first := syscall.Pwrite(fd, []byte(whole[:tail]), 0)
				_, last := syscall.Pwrite(fd, []byte(footer), size-int64(len(footer)))
				return errors.Join(first, last, syscall.Close(fd))
			})
		})
		wantErrno(t, "close of "+base, err, want)
		if read := readBytes(t, l) - before; read > 4<<20 {
			t.Errorf("%s: %d bytes read for the check of 1 GiB", base, read)
		}
	}
	if info, err := l.StoredInfo(parquetDir + "/good"); err != nil || info.Size != size {
		t.Errorf("published: %+v, %v", info, err)
	}
}

// readBytes is how much the daemon has read so far, by whichever system call.
func readBytes(t *testing.T, l *mounttest.Lake) (n int64) {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", l.Pid()))
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "rchar: %d", &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
