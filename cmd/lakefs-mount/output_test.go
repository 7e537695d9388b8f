package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// deaf is an output that takes some bytes, and then none.
type deaf struct {
	room int
	err  error
}

func (d *deaf) Write(text []byte) (int, error) {
	if len(text) <= d.room {
		d.room -= len(text)
		return len(text), nil
	}
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: d.err}
}

// TestOutputThatIsNotTaken: whatever prints is told of, once.
func TestOutputThatIsNotTaken(t *testing.T) {
	for _, line := range []string{"version", "version --json", "status", "status --json", "config", "completion bash", "man", "help", "du --help", "__complete rows --format t"} {
		for _, room := range []int{0, 2} {
			var errs bytes.Buffer
			p := &program{name: "lakefs-mount", args: strings.Fields(line), environ: os.Environ(), stdout: &deaf{room, unix.ENOSPC}, stderr: &errs}
			code := p.run(context.Background())
			if code != exitFailed || strings.Count(errs.String(), "no space left on device") != 1 || strings.Count(errs.String(), "lakefs-mount: ") != 1 {
				t.Errorf("%s, %d bytes taken: exit code %d, %q", line, room, code, errs.String())
			}
		}
	}
	var errs bytes.Buffer
	p := &program{name: "lakefs-mount", args: []string{"version"}, stdout: &deaf{0, unix.EPIPE}, stderr: &errs}
	if code := p.run(context.Background()); code != exitOK || errs.Len() > 0 {
		t.Errorf("nobody reads any more: exit code %d, %q", code, errs.String())
	}
}

// What went wrong besides is told too.
func TestOutputThatIsNotTakenBesideAnError(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: unix.ENOSPC}
	o := &output{to: &deaf{0, unix.ENOSPC}}
	if _, err := o.Write([]byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"not all was printed: standard output: no space left on device":               errReported,
		"no such lake; not all was printed: standard output: no space left on device": errors.New("no such lake"),
		"not all was printed: standard output: no space left on device ":              full,
	} {
		if got := o.check(err); got == nil || got.Error() != strings.TrimSpace(want) {
			t.Errorf("beside %v: %v, want %s", err, got, want)
		}
	}
}

func TestCommandsOnAFullDevice(t *testing.T) {
	lake := rowsLake(t)
	const file = inPartition + "a\\ b.parquet"
	for _, line := range []string{
		"du db/t", "du db/csv", "du --json db/csv", "schema db/t", "rows " + file, "rows --format table " + file, "status .", "recover .", "recover --json .", "check .", "top --once .",
	} {
		r := lake.Sh(lake.Binary() + " " + line + " > /dev/full")
		if r.Code != exitFailed || strings.Count(r.Err, "no space left on device") != 1 {
			t.Errorf("%s: exit code %d, %q", line, r.Code, r.Err)
		}
	}
	if r := lake.Sh(lake.Binary() + " du db/csv | true"); r.Err != "" {
		t.Errorf("nobody reads: %q", r.Err)
	}
	mounttest.FolderOnly(t, "its source is checked")
	if r := lake.Run("check", lake.Source); r.Code != exitOK {
		t.Fatalf("check: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if r := lake.Sh(lake.Binary() + " check " + lake.Source + " > /dev/full"); r.Code != exitFailed || !strings.Contains(r.Err, "no space left on device") {
		t.Errorf("check: exit code %d, %q", r.Code, r.Err)
	}
}
