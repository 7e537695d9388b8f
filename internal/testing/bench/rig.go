package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The file systems that are compared.
const (
	loopback      = "loopback"
	mounted       = "lakefs-mount"
	noPassthrough = "no passthrough"
)

// system is one mounted file system.
type system struct {
	name string
	root string // where the table's files are
	cmd  *exec.Cmd
	idle float64 // MiB of resident memory after the mount
}

// rig is the folder and what serves it.
type rig struct {
	work, lake, data, bin, self string
	large                       int64
	systems                     []*system
	name                        string // of what is being written, new each turn
	turn                        int
}

const manifest = `{"manifest_version":1,"table_type":"EXTERNAL_TABLE","database_name":"db","name":"t","partition_keys":[],
"parameters":{},"storage_descriptor":{"location":"_data/t/","input_format":"org.apache.hadoop.mapred.TextInputFormat",
"output_format":"org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat","serde_info":{"serialization_library":
"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe","parameters":{}},"columns":[{"name":"a","type":"string"}]}}`

func newRig(work string, large int64) (*rig, error) {
	r := &rig{work: work, large: large, lake: filepath.Join(work, "lake")}
	r.data = filepath.Join(r.lake, "_data", "t")
	sqe := filepath.Join(r.lake, "db", "t", "_sqe")
	for _, d := range []string{r.data, sqe, filepath.Join(work, "mnt"), filepath.Join(work, "plain"), filepath.Join(work, "loop")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(sqe, "table.json"), []byte(manifest), 0o644); err != nil {
		return nil, err
	}
	var err error
	if r.bin, err = build(work, "lakefs-mount", "./cmd/lakefs-mount"); err != nil {
		return nil, err
	}
	r.self, err = os.Executable()
	return r, err
}

// start mounts all systems.
func (r *rig) start() error {
	mount := func(name, dir string, flags ...string) *system {
		mnt := filepath.Join(r.work, dir)
		args := append([]string{"mount", "--log-level=error", "--state-dir", filepath.Join(r.work, "state-"+dir)}, flags...)
		return &system{name: name, root: filepath.Join(mnt, "db", "t"), cmd: exec.Command(r.bin, append(args, r.lake, mnt)...)} //nolint:noctx // ends with the bench
	}
	loop := filepath.Join(r.work, "loop")
	plain := mount(noPassthrough, "plain", "--no-passthrough")
	r.systems = []*system{
		{name: loopback, root: loop, cmd: exec.Command(r.self, "-serve-loopback", loop, r.data)}, //nolint:noctx // ends with the bench
		mount(mounted, "mnt"), plain,
	}
	for _, s := range r.systems {
		s.cmd.Stderr = os.Stderr
		if err := s.cmd.Start(); err != nil {
			return err
		}
		if err := s.await(); err != nil {
			return err
		}
		s.idle = s.rss()
	}
	return nil
}

// await waits until the mount table shows the mount and its root answers.
func (s *system) await() error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if table, err := os.ReadFile("/proc/self/mounts"); err == nil && strings.Contains(string(table), " "+s.mountpoint()+" ") {
			if _, err := os.Stat(s.root); err == nil {
				return nil
			}
		}
		<-time.After(10 * time.Millisecond)
	}
	return fmt.Errorf("%s is not mounted", s.name)
}

func (s *system) mountpoint() string { return strings.TrimSuffix(s.root, "/db/t") }

// rss is the resident memory in MiB.
func (s *system) rss() float64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kib / 1024
}

// close unmounts everything, whatever happened.
func (r *rig) close() error {
	var problems []error
	for _, s := range r.systems {
		if s.cmd.Process == nil {
			continue
		}
		if command("fusermount3", "-u", s.mountpoint()) != nil {
			problems = append(problems, command("fusermount3", "-u", "-z", s.mountpoint()))
		}
		stuck := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
		_ = s.cmd.Wait() // its exit status says nothing of the figures
		stuck.Stop()
	}
	return errors.Join(problems...)
}
