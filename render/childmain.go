package render

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A child's memory. The collector works against childHeap. What is writable may grow by
// childData, which is what can be touched: the heap grows by it in pieces of 4 MiB, stacks
// and the runtime's tables are the rest. Address space, which the heap reserves 64 MiB at a
// time and nothing need stand behind, may grow by childSpace.
const (
	childHeap  = 144 << 20
	childData  = 208 << 20
	childSpace = 512 << 20
	childStack = 32 << 20 // of one goroutine: recursion of a damaged file
	childFiles = 16

	// childMemory is what a child has at most in memory, with the program's own pages.
	childMemory = 256 << 20
)

// Exit codes of a child. A Go program that fails by itself exits with 2.
const (
	childDone    = 0
	childFailed  = 1 // and said why
	childOrphan  = 3 // its parent is gone
	childRefused = 4 // no job, or no limits
)

// errSource is what a read of the file returns where the parent could not read it.
var errSource = errors.New("the file's bytes could not be read")

// Func makes the text of a job. Its reads of src may be concurrent, and are answered
// with io.EOF past size.
type Func func(ctx context.Context, w io.Writer, src io.ReaderAt, size int64, s Spec) error

// Main is the child that [Children.Start] runs: the socket to its parent is its standard
// input, the text goes to its standard output. It returns the exit code. run nil does
// what the job's Kind says.
func Main(run Func) int {
	if err := limitSelf(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return childRefused
	}
	if run == nil {
		run = byKind
	}
	if err := syscall.SetNonblock(0, true); err != nil { // so that waiting for the parent takes no thread
		return childRefused
	}
	r := &remote{conn: os.NewFile(0, "parent"), asked: make(map[uint32]*ask)}
	in := bufio.NewReaderSize(r.conn, 64<<10)
	h, err := readHeader(in)
	var j job
	if err == nil {
		err = readJSON(in, h, &j)
	}
	if err != nil || h.Kind != frameJob {
		return childRefused
	}
	r.size = j.Size
	go r.listen(in)

	w := bufio.NewWriterSize(os.Stdout, 64<<10)
	err = guarded(func() error { return run(context.Background(), w, r, j.Size, j.Spec) })
	if flushErr := w.Flush(); err == nil {
		err = flushErr
	}
	if r.tell(told(err)) != nil {
		return childOrphan
	}
	if err != nil {
		return childFailed
	}
	return childDone
}

// byKind makes the text that the job's kind asks for.
func byKind(ctx context.Context, w io.Writer, src io.ReaderAt, size int64, s Spec) error {
	switch s.Kind {
	case KindRows:
		return Rows(ctx, w, src, size, s)
	case KindFooter:
		return Footer(ctx, w, src, size, s)
	}
	return fmt.Errorf("no text of kind %q", s.Kind)
}

// guarded makes a panic of a decoder an error: it is the file that is damaged.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: the decoder broke off (%v)", p)
		}
	}()
	return f()
}

func told(err error) outcome {
	var fault *Error
	switch {
	case err == nil:
		return outcome{Done: true}
	case errors.Is(err, errSource):
		return outcome{Source: true, Text: err.Error()}
	case errors.As(err, &fault):
		return outcome{Fault: fault, Text: err.Error()}
	}
	return outcome{Text: err.Error()}
}

// limitSelf takes from the process what it does not need: memory, files, core dumps, new
// privileges.
func limitSelf() error {
	space, data, err := mapped()
	if err != nil {
		return err
	}
	debug.SetMaxStack(childStack)
	debug.SetMemoryLimit(childHeap)
	for _, l := range []struct {
		which int
		limit uint64
	}{
		{unix.RLIMIT_DATA, data + shadow*childData},
		{unix.RLIMIT_AS, space + shadow*childSpace},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, childFiles},
		{unix.RLIMIT_FSIZE, 0}, // it writes to a pipe alone
	} {
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("limit %d: %w", l.which, err)
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// mapped is the size of the process's address space, and of what it may write, in bytes.
func mapped() (space, data uint64, err error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	var resident, shared, code, libraries uint64
	if _, err = fmt.Sscan(string(text), &space, &resident, &shared, &code, &libraries, &data); err != nil {
		return 0, 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	page := uint64(os.Getpagesize())
	return space * page, data * page, nil
}

// remote is the file as its parent reads it.
type remote struct {
	conn *os.File
	size int64

	write sync.Mutex // of conn
	mu    sync.Mutex // guards what follows
	last  uint32
	asked map[uint32]*ask
}

// ask is a range that is waited for.
type ask struct {
	into []byte
	done chan error // has room for the answer
}

var _ io.ReaderAt = (*remote)(nil)

// ReadAt asks for all of p at once, in ranges.
func (r *remote) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d", off)
	}
	if off >= r.size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), r.size-off)]
	var asks []*ask
	for at := 0; at < len(want); at += maxRange {
		a, err := r.ask(want[at:min(at+maxRange, len(want))], off+int64(at))
		if err != nil {
			return 0, err
		}
		asks = append(asks, a)
	}
	n, failed := 0, error(nil)
	for _, a := range asks { // all of them: what comes late is written into p
		if err := <-a.done; err != nil && failed == nil {
			failed = err
		} else if failed == nil {
			n += len(a.into)
		}
	}
	if failed == nil && n < len(p) {
		failed = io.EOF
	}
	return n, failed
}

func (r *remote) ask(into []byte, off int64) (*ask, error) {
	a := &ask{into: into, done: make(chan error, 1)}
	r.mu.Lock()
	r.last++ // 4 G of them are not waited for at once
	id := r.last
	r.asked[id] = a
	r.mu.Unlock()
	r.write.Lock()
	defer r.write.Unlock()
	_, err := r.conn.Write(header{Kind: frameRange, ID: id, Off: off, Length: uint32(len(into))}.append(nil))
	return a, err
}

// tell says how it went.
func (r *remote) tell(o outcome) error {
	r.write.Lock()
	defer r.write.Unlock()
	o.Text = o.Text[:min(len(o.Text), math.MaxInt16)]
	return writeJSON(r.conn, frameOutcome, o)
}

// listen takes the parent's answers, and ends the process when there is no parent any
// more, whatever else it is doing.
func (r *remote) listen(in io.Reader) {
	for {
		h, err := readHeader(in)
		if err != nil {
			os.Exit(childOrphan)
		}
		r.mu.Lock()
		a := r.asked[h.ID]
		delete(r.asked, h.ID)
		r.mu.Unlock()
		switch {
		case a == nil:
			os.Exit(childOrphan)
		case h.Kind == frameFailed:
			a.done <- errSource
		case h.Kind != frameBytes || int(h.Length) != len(a.into):
			os.Exit(childOrphan)
		default:
			if _, err = io.ReadFull(in, a.into); err != nil {
				os.Exit(childOrphan)
			}
			a.done <- nil
		}
	}
}
