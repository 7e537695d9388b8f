package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Names of contenders that are not other people's.
const (
	ours      = "ours"
	plain     = "plain" // with 32 connections
	plainFew  = "plain-8"
	fewConns  = 8
	manyConns = 32
)

// reader is one who does the cases' work.
type reader struct {
	name    string
	version string
	conns   int  // of the plain program; 0: it is a mount
	streams bool // a second time, with settings for throughput
	// command mounts the table at mnt and stays in the foreground. dir is empty, and
	// its own.
	command func(endpoint, dir, mnt string) (*exec.Cmd, error)
	data    string // the table's directory, below the mount point
}

// coldMount is one that nobody has read from.
type coldMount struct {
	system
	dir   string       // of its caches
	data  string       // the table's directory
	wrote string       // the name of what the run writes there
	said  bytes.Buffer // to be read when it has ended
}

// cold mounts for one run.
func (r *readRig) cold(ctx context.Context, who reader, endpoint string) (*coldMount, error) {
	dir := filepath.Join(r.work, r.name())
	m := &coldMount{dir: dir, wrote: written + r.name()}
	m.name, m.root = who.name, filepath.Join(dir, "mnt")
	m.data = filepath.Join(m.root, who.data)
	cache := filepath.Join(dir, "cache")
	if err := errors.Join(os.MkdirAll(m.root, 0o755), os.Mkdir(cache, 0o700)); err != nil {
		return nil, err
	}
	var err error
	if m.cmd, err = who.command(endpoint, cache, m.root); err != nil {
		return nil, err
	}
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	if err = m.start(ctx); err != nil {
		err = errors.Join(fmt.Errorf("mount: %w", err), m.close())
		return nil, fmt.Errorf("%w: %s", err, m.said.String())
	}
	return m, nil
}

// close unmounts, and removes the caches. A peer that does not end is killed.
func (m *coldMount) close() error {
	if m.cmd.Process != nil {
		_ = exec.Command("fusermount3", "-u", "-z", m.root).Run() //nolint:noctx // ends at once; an error: it is not mounted
		stuck := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) })
		_ = m.cmd.Wait() // its exit status says nothing of the figures
		stuck.Stop()
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err == nil && strings.Contains(string(mounts), " "+m.root+" ") {
		return fmt.Errorf("%s is still mounted", m.name) // and its directory is left alone
	}
	return os.RemoveAll(m.dir)
}
