package spark_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jobTimeout bounds one job; Spark on a busy machine takes its time.
const jobTimeout = 3 * time.Minute

// job is what a script of testdata is asked to do.
type job struct {
	Do        string `json:"do,omitempty"`
	Path      string `json:"path,omitempty"`
	Format    string `json:"format,omitempty"`
	Mode      string `json:"mode,omitempty"`      // overwrite, append
	Algorithm string `json:"algorithm,omitempty"` // of the FileOutputCommitter
	Dynamic   bool   `json:"dynamic,omitempty"`   // overwrite replaces the partitions that are written, and no others
	Flat      bool   `json:"flat,omitempty"`      // the table has no partitions
	Rows      []row  `json:"rows,omitempty"`
	Jobs      []job  `json:"jobs,omitempty"`
	Count     int    `json:"count,omitempty"`    // of rows, where they are not told one by one
	Endpoint  string `json:"endpoint,omitempty"` // of S3; "": Path is in a folder
	Access    string `json:"access,omitempty"`
	Secret    string `json:"secret,omitempty"`
}

// driver is a script of testdata that does one job after the other.
type driver struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	printed *strings.Builder
	ended   bool
}

// start runs a script until the test ends, which asserts that it goes cleanly.
func start(t *testing.T, env []string, python, script string, args ...string) *driver {
	t.Helper()
	d := &driver{printed: &strings.Builder{}}
	d.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), python, append([]string{"testdata/" + script}, args...)...)
	d.cmd.Env, d.cmd.Stderr, d.cmd.WaitDelay = env, d.printed, 5*time.Second
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Spark's JVM and workers are in it
	in, err := d.cmd.StdinPipe()
	must(t, err)
	out, err := d.cmd.StdoutPipe()
	must(t, err)
	must(t, d.cmd.Start())
	d.in, d.out = in, bufio.NewReader(out)
	t.Cleanup(func() { d.stop(t) })
	return d
}

// stop ends the script by the end of its input. What it printed is told where the
// test has failed.
func (d *driver) stop(t *testing.T) {
	t.Helper()
	if d.ended {
		return
	}
	d.ended = true
	timeout := time.AfterFunc(jobTimeout, d.killAll)
	defer timeout.Stop()
	err := errors.Join(d.in.Close(), d.cmd.Wait())
	if err != nil {
		t.Errorf("%s: %v\n%s", d.cmd.Args[1], err, d.printed)
	} else if t.Failed() {
		t.Logf("%s printed\n%s", d.cmd.Args[1], d.printed)
	}
}

// killAll ends the script and all that it started.
func (d *driver) killAll() { _ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) }

// kill is killAll, and waits for the end.
func (d *driver) kill() {
	d.killAll()
	_ = d.cmd.Wait() // it was killed
	d.ended = true
}

// try does a job; into is what the answer is decoded into, nil for none.
func (d *driver) try(j job, into any) error {
	line, err := json.Marshal(j)
	if err != nil {
		return err
	}
	timeout := time.AfterFunc(jobTimeout, d.killAll)
	defer timeout.Stop()
	if _, err = d.in.Write(append(line, '\n')); err != nil {
		return err
	}
	raw, err := d.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	var answer struct {
		Error string          `json:"error"`
		Rows  json.RawMessage `json:"rows"`
	}
	if err = json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Rows, into)
}

// must does a job that must succeed.
func (d *driver) must(t *testing.T, j job, into any) {
	t.Helper()
	if err := d.try(j, into); err != nil {
		t.Fatalf("%s of %s: %v", j.Do, j.Path, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
