package main

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/format"
)

const (
	duListers = 16   // directories at once
	duReaders = 32   // footers at once
	duNames   = 1000 // of a directory that are taken at once
)

// surveyor counts what lies below a directory of a table, through its mount.
type surveyor struct {
	p        *program
	tableDir string             // its path in the mount
	status   catalogview.Status // the table's
	flags    duFlags
	mixed    bool   // each partition is to be asked for its format
	common   string // of all partitions, where it is not mixed

	listed, done atomic.Int64 // files
	whole        atomic.Bool  // all are listed

	mu     sync.Mutex // guards what follows, and the bar's line
	bar    *progress
	parts  map[string]*counts
	above  int64 // directories above the partitions that are not listed to their end
	failed []warmFailure
}

// surveyDir is a directory to list.
type surveyDir struct {
	path   string
	below  []string // the names that lead to it from the table
	format string   // of its files, where it is in a partition
}

// surveyFile is a file whose rows are to be counted.
type surveyFile struct {
	path, part, format string
}

func newSurveyor(p *program, tableDir string, status catalogview.Status, flags duFlags) *surveyor {
	s := &surveyor{p: p, tableDir: tableDir, status: status, flags: flags, common: status.Format, parts: make(map[string]*counts)}
	switch formats := status.PartitionFormats; {
	case len(formats) > 1, string(status.MultiFormat) == "null":
		s.mixed = true
	case len(formats) == 1:
		for s.common = range formats { //nolint:revive // its one key
		}
	}
	return s
}

// run lists and counts. It returns when all is done, or at once when ctx is: what is
// being read then ends with the process.
func (s *surveyor) run(ctx context.Context, from string) {
	s.bar = s.p.newSteps("files")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.bar.steps(ctx, s.progress, func() error {
			s.count(ctx, from)
			return nil
		})
	}()
	ended(ctx, done)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.clear()
}

// progress is how many files are done, and once that is known of how many.
func (s *surveyor) progress(context.Context) (done, total int64) {
	if s.whole.Load() {
		total = s.listed.Load()
	}
	return s.done.Load(), total
}

func (s *surveyor) count(ctx context.Context, from string) {
	start := surveyDir{path: from, format: s.common}
	if rel, err := filepath.Rel(s.tableDir, from); err == nil && rel != "." {
		start.below = strings.Split(rel, string(filepath.Separator))
	}
	if len(start.below) > len(s.status.PartitionKeys) {
		// It lies in a partition, which is asked here, and no more below.
		keys := len(s.status.PartitionKeys)
		start.format = s.formatOf(ctx, surveyDir{path: filepath.Join(s.tableDir, filepath.Join(start.below[:keys]...)), below: start.below[:keys], format: s.common})
	}
	s.expect(start, 1)
	dirs := newPending(start)
	files := make(chan surveyFile, duNames)
	var listers, readers sync.WaitGroup
	for range duListers {
		listers.Go(func() {
			for d, more := dirs.take(); more; d, more = dirs.take() {
				dirs.add(s.list(ctx, d, files))
			}
		})
	}
	for range duReaders {
		readers.Go(func() {
			for f := range files {
				s.countFile(ctx, f)
				s.done.Add(1)
			}
		})
	}
	listers.Wait()
	s.whole.Store(true)
	close(files)
	readers.Wait()
}

// list counts the files of a directory, hands on those whose rows are to be counted, and
// returns the directories in it.
func (s *surveyor) list(ctx context.Context, d surveyDir, files chan<- surveyFile) (below []surveyDir) {
	if ctx.Err() != nil {
		return nil
	}
	part := s.partition(d.below)
	d.format = s.formatOf(ctx, d)
	f, err := os.OpenFile(d.path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		s.fail(d.path, err)
		return nil
	}
	defer f.Close() //nolint:errcheck // it was read alone
	for ctx.Err() == nil {
		entries, err := f.ReadDir(duNames)
		for _, e := range entries {
			switch {
			case s.hidden(d, e.Name()):
			case e.IsDir():
				names := append(slices.Clip(d.below), e.Name())
				found := surveyDir{filepath.Join(d.path, e.Name()), names, d.format}
				s.expect(found, 1)
				below = append(below, found)
			case e.Type().IsRegular():
				s.found(ctx, surveyFile{filepath.Join(d.path, e.Name()), part, d.format}, e, files)
			}
		}
		if errors.Is(err, io.EOF) {
			s.expect(d, -1)
			break
		}
		if err != nil {
			s.fail(d.path, err)
			break
		}
	}
	return below
}

// expect notes that n more directories like d are to be listed, or with -1 that d was.
func (s *surveyor) expect(d surveyDir, n int64) {
	if len(d.below) >= s.levels() {
		s.add(s.partition(d.below), counts{unlisted: n})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.above += n
}

// levels is how many names below the table are told apart.
func (s *surveyor) levels() int {
	keys := len(s.status.PartitionKeys)
	if s.flags.depth >= 0 {
		keys = min(keys, s.flags.depth)
	}
	return keys
}

// partition is the name under which files are counted that lie below so many names.
func (s *surveyor) partition(below []string) string {
	if below = below[:min(len(below), s.levels())]; len(below) > 0 {
		return strings.Join(below, "/")
	}
	return "."
}

// hidden tells names in d that are no data. A partition's may begin as its key does.
func (s *surveyor) hidden(d surveyDir, name string) bool {
	if name[0] != '_' && name[0] != '.' {
		return false
	}
	level := len(d.below)
	if level >= len(s.status.PartitionKeys) {
		return true
	}
	key, _, found := strings.Cut(name, "=")
	return !found || !strings.EqualFold(key, s.status.PartitionKeys[level])
}

// formatOf is the format of the files in d: its partition's, which is asked for at that
// level where the partitions differ. "" is one that the file itself may tell.
func (s *surveyor) formatOf(ctx context.Context, d surveyDir) string {
	if s.flags.noRows || !s.mixed || len(d.below) != len(s.status.PartitionKeys) {
		return d.format
	}
	status, err := directoryStatusOf(ctx, d.path)
	if err != nil {
		if ctx.Err() == nil {
			s.fail(d.path, err)
		}
		return ""
	}
	return status.Format
}

// found counts a file, and hands it on where its rows are to be counted.
func (s *surveyor) found(ctx context.Context, f surveyFile, e iofs.DirEntry, files chan<- surveyFile) {
	info, err := e.Info()
	if errors.Is(err, iofs.ErrNotExist) {
		return // it went since
	}
	if err != nil {
		s.fail(f.path, err)
		s.add(f.part, counts{unlisted: 1})
		return
	}
	c := counts{Files: 1, Bytes: info.Size(), Uncounted: 1}
	s.listed.Add(1)
	switch {
	case s.flags.noRows, silent(f.format) && c.Bytes > 0:
	case c.Bytes == 0:
		c.Uncounted = 0
		c.addRows(0)
	default:
		s.add(f.part, c)
		select {
		case files <- f:
		case <-ctx.Done():
		}
		return
	}
	s.add(f.part, c)
	s.done.Add(1)
}

// silent tells formats whose files have no footer with a number of rows.
func silent(name string) bool {
	switch name {
	case "avro", "csv", "text", "json", "sequence", "rc":
		return true
	}
	return false
}

// countFile counts a file's rows, which were not so far.
func (s *surveyor) countFile(ctx context.Context, f surveyFile) {
	if ctx.Err() != nil {
		return
	}
	rows, known, err := footerRows(f.path, f.format)
	switch {
	case err != nil:
		s.fail(f.path, err)
	case known:
		s.add(f.part, counts{Rows: &rows, Uncounted: -1})
	}
}

// footerRows reads the rows of a file from its end alone: the kernel is told not to read
// ahead of that.
func footerRows(path, name string) (rows int64, known bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()                                       //nolint:errcheck // it was read alone
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) // advice
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	if name != "parquet" && name != "orc" {
		end := make([]byte, min(info.Size(), 4))
		if _, err = f.ReadAt(end, info.Size()-int64(len(end))); err != nil {
			return 0, false, err
		}
		name = format.DetectEnd(end)
	}
	rows, known, err = format.Rows(name, f, info.Size())
	var flawed *format.Error
	if errors.As(err, &flawed) {
		flawed.Name = filepath.Base(path)
	}
	return rows, known, err
}

func (s *surveyor) add(part string, c counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[part] == nil {
		s.parts[part] = &counts{}
	}
	s.parts[part].add(c)
}

// fail names a path that could not be read, at once.
func (s *surveyor) fail(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.clear()
	reason := printable(bare(err).Error())
	s.failed = append(s.failed, warmFailure{path, reason})
	s.p.errorf("lakefs-mount: %q: %s\n", path, reason)
}

// pending are directories to list, the last found first. It has no more when none is
// left and nobody who took one may still find others.
type pending struct {
	mu    sync.Mutex
	moved *sync.Cond
	dirs  []surveyDir
	taken int // and what is in them not added yet
}

func newPending(first surveyDir) *pending {
	p := &pending{dirs: []surveyDir{first}}
	p.moved = sync.NewCond(&p.mu)
	return p
}

// take waits for the next. Who has it adds what was found in it, which may be nothing.
func (p *pending) take() (d surveyDir, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.dirs) == 0 && p.taken > 0 {
		p.moved.Wait()
	}
	if len(p.dirs) == 0 {
		return d, false
	}
	last := len(p.dirs) - 1
	d, p.dirs = p.dirs[last], p.dirs[:last]
	p.taken++
	return d, true
}

func (p *pending) add(found []surveyDir) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Reverse(found)
	p.dirs = append(p.dirs, found...)
	p.taken--
	p.moved.Broadcast()
}
