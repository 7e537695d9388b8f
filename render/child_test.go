package render

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is also the child of the tests: "render" makes it one, whose work is what the
// job's Format says; "parent" a process that has one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "render":
			os.Exit(Main(childWork))
		case "parent":
			os.Exit(parentOfOne(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

// childWork is what the children of these tests do. Those that render files tell their peak
// of memory at the end.
func childWork(ctx context.Context, w io.Writer, src io.ReaderAt, size int64, s Spec) error {
	flush := w.(*bufio.Writer).Flush
	switch s.Format {
	case "copy":
		_, err := io.Copy(w, io.NewSectionReader(src, 0, size))
		return err
	case "lines": // without end
		for i := 0; ; i++ {
			if _, err := fmt.Fprintln(w, i); err != nil {
				return err
			}
		}
	case "allocate":
		return allocate(w)
	case "huge":
		b := make([]byte, int64(len(s.Name))<<30)
		_, err := w.Write(b[:10])
		return err
	case "recurse":
		return deeper(0)
	case "panic":
		panic("damaged")
	case "panic aside":
		go func() { panic("damaged") }()
		select {}
	case "loop":
		say(w, os.Getpid())
		_ = flush()
		for i := 0; ; i++ {
			_ = i
		}
	case "hang":
		say(w, os.Getpid())
		_ = flush()
		select {}
	case "outside":
		if _, err := src.(*remote).ask(make([]byte, 10), size-1); err != nil {
			return err
		}
		select {}
	case "garbage":
		_, _ = src.(*remote).conn.WriteString(strings.Repeat("x", 1000))
		select {}
	case "fault":
		say(w, "first")
		return &Error{File: s.Name, Column: "c", Reason: "is not so", Remedy: "write it again"}
	case "world":
		return tellWorld(w)
	}
	err := byKind(ctx, w, src, size, s)
	say(w, "\n"+highest("self"))
	return err
}

// allocate tells how much memory the process has had, a MiB more each time.
func allocate(w io.Writer) error {
	for all := [][]byte(nil); ; {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = byte(i)
		}
		all = append(all, b)
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		say(w, strings.Fields(rest)[0], len(all))
		if err := w.(*bufio.Writer).Flush(); err != nil {
			return err
		}
	}
}

func deeper(n int) error {
	var b [1024]byte
	b[n%1024] = 1
	if n < 0 {
		return nil
	}
	return deeper(n + int(b[n%1024]))
}

func say(w io.Writer, words ...any) { _, _ = fmt.Fprintln(w, words...) }

// tellWorld tells what a child has of the world.
func tellWorld(w io.Writer) error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	say(w, "cwd", dir)
	say(w, "env", os.Environ())
	for _, fd := range fds {
		to, _ := os.Readlink("/proc/self/fd/" + fd.Name()) // that of the list is closed
		say(w, "fd", fd.Name(), to)
	}
	_, err = w.Write(status)
	return err
}

// parentOfOne starts a child that does what, passes its text on, and waits to be killed.
func parentOfOne(what string) int {
	c := NewChildren(Options{})
	child, err := c.Start(context.Background(), Spec{Format: what}, Whole(strings.NewReader("")), 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(os.Stdout, child)
	return 0
}

func testChildren(tb testing.TB, o Options) *Children {
	tb.Helper()
	c := NewChildren(o)
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func start(tb testing.TB, c *Children, what, file string) *Child {
	tb.Helper()
	child, err := c.Start(tb.Context(), Spec{Name: "f", Format: what}, Whole(strings.NewReader(file)), int64(len(file)))
	if err != nil {
		tb.Fatal(err)
	}
	return child
}

// gone checks that a process is no more, not even as a zombie.
func gone(tb testing.TB, pid int) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if time.Now().After(deadline) {
			tb.Fatalf("process %d is still there", pid)
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // it polls, with a deadline
	}
}

func firstLine(tb testing.TB, r io.Reader) string {
	tb.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestKilledChildIsNotCalledLarge: who ends it from outside says nothing of its memory.
func TestKilledChildIsNotCalledLarge(t *testing.T) {
	c := testChildren(t, Options{})
	child := start(t, c, "lines", "")
	firstLine(t, child)
	if err := child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, child)
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Reason, "was killed") || strings.Contains(e.Error(), "MiB") {
		t.Errorf("got %v", err)
	}
	_ = child.Close()
}

func TestTextOfAChildIsWhole(t *testing.T) {
	c := testChildren(t, Options{})
	file := strings.Repeat("0123456789abcdef", 300_000) // several ranges
	child := start(t, c, "copy", file)
	got, err := io.ReadAll(child)
	if err != nil || string(got) != file {
		t.Errorf("%d bytes and %v, want %d", len(got), err, len(file))
	}
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	gone(t, child.cmd.Process.Pid)
}

func TestChildIsGoneAfterItsReader(t *testing.T) {
	c := testChildren(t, Options{})
	child := start(t, c, "lines", "")
	if got := firstLine(t, child); got != "0" {
		t.Errorf("first line %q", got)
	}
	_ = child.Close()
	if err := syscall.Kill(child.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := child.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("a read after Close: %v", err)
	}
}

func TestChildEndsWithItsContext(t *testing.T) {
	c := testChildren(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	child, err := c.Start(ctx, Spec{Name: "f", Format: "hang"}, Whole(strings.NewReader("")), 0)
	if err != nil {
		t.Fatal(err)
	}
	firstLine(t, child)
	cancel()
	if _, err := io.ReadAll(child); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = child.Close()
}

func TestChildrenEndAtClose(t *testing.T) {
	c := NewChildren(Options{Max: 3})
	var all []*Child
	for range 3 {
		child := start(t, c, "hang", "")
		firstLine(t, child)
		all = append(all, child)
	}
	waiting := make(chan error)
	go func() {
		_, err := c.Start(context.Background(), Spec{}, nil, 0)
		waiting <- err
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waiting; !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
		t.Errorf("a start at Close: %v", err)
	}
	for _, child := range all {
		gone(t, child.cmd.Process.Pid)
		if _, err := io.ReadAll(child); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		_ = child.Close()
	}
}

func TestDamageEndsTheChildAlone(t *testing.T) {
	for _, test := range []struct{ what, want string }{
		{"allocate", "more than 256 MiB"},
		{"huge", "more than 256 MiB"},
		{"recurse", "nested too deeply"},
		{"panic", "broke off"},
		{"panic aside", "broke off"},
		{"outside", "asked for 10 bytes at 3 of a file of 4"},
		{"garbage", "asked for"},
		{"fault", `"f", column "c": is not so; write it again`},
	} {
		t.Run(test.what, func(t *testing.T) {
			c := testChildren(t, Options{})
			child := start(t, c, test.what, "file")
			_, err := io.Copy(io.Discard, child)
			if fault := (*Error)(nil); !errors.As(err, &fault) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q; it said %q", err, test.want, child.complaint.text)
			}
			_ = child.Close()
			gone(t, child.cmd.Process.Pid)
		})
	}
}

func TestMemoryOfAChildIsBounded(t *testing.T) {
	c := testChildren(t, Options{})
	child := start(t, c, "allocate", "")
	text, err := io.ReadAll(child)
	if err == nil {
		t.Error("it allocated without end")
	}
	_ = child.Close()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var most, allocated int64
	if _, err := fmt.Sscan(lines[len(lines)-1], &most, &allocated); err != nil {
		t.Fatal(err)
	}
	if shadow > 1 {
		t.Skip("the race detector takes memory of its own")
	}
	if most > childMemory>>10 || allocated < childHeap>>20 {
		t.Errorf("it had %d MiB, of which it allocated %d", most>>10, allocated)
	}
	t.Logf("a child that allocates without end has %d MiB at most, of which it allocated %d", most>>10, allocated)
}

func TestTextBeforeAFailureIsRead(t *testing.T) {
	c := testChildren(t, Options{})
	child := start(t, c, "fault", "")
	got, err := io.ReadAll(child)
	if string(got) != "first\n" || err == nil {
		t.Errorf("got %q, %v", got, err)
	}
	_ = child.Close()
}

func TestNothingMovesUntilTheDeadline(t *testing.T) {
	for _, what := range []string{"loop", "hang"} {
		t.Run(what, func(t *testing.T) {
			c := testChildren(t, Options{Deadline: 300 * time.Millisecond})
			child := start(t, c, what, "")
			_, err := io.ReadAll(child)
			if !errors.Is(err, ErrDeadline) {
				t.Errorf("got %v", err)
			}
			_ = child.Close()
			gone(t, child.cmd.Process.Pid)
		})
	}
}

func TestReaderWhoRestsMeetsNoDeadline(t *testing.T) {
	c := testChildren(t, Options{Deadline: 200 * time.Millisecond})
	child := start(t, c, "lines", "")
	r := bufio.NewReaderSize(child, 16)
	for i := range 3 {
		line, err := r.ReadString('\n')
		if err != nil || line != strconv.Itoa(i)+"\n" {
			t.Fatalf("line %d: %q, %v", i, line, err)
		}
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // it is a reader who rests
	}
	_ = child.Close()
}

func TestWhoRestsMakesRoom(t *testing.T) {
	c := testChildren(t, Options{Max: 1})
	resting := start(t, c, "lines", "")
	firstLine(t, resting)
	next := start(t, c, "copy", "abc")
	if got, err := io.ReadAll(next); string(got) != "abc" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := io.Copy(io.Discard, resting); !errors.Is(err, ErrRested) {
		t.Errorf("who rested: %v", err)
	}
	_, _ = next.Close(), resting.Close()
}

func TestTurnHasADeadline(t *testing.T) {
	c := testChildren(t, Options{Max: 1, Deadline: 3 * time.Second})
	busy := start(t, c, "lines", "")
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, busy)
	}()
	if _, err := c.Start(t.Context(), Spec{Name: "second", Format: "copy"}, Whole(strings.NewReader("")), 0); !errors.Is(err, ErrDeadline) {
		t.Errorf("got %v", err)
	}
	_ = busy.Close()
	<-read
}

// failing fails to read from an offset on.
type failing struct {
	from int64
	err  error
}

func (f failing) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, f.err
	}
	return len(p), nil
}

func TestErrorOfTheSourceReachesTheReader(t *testing.T) {
	c := testChildren(t, Options{})
	broken := errors.New("the store is broken")
	child, err := c.Start(t.Context(), Spec{Name: "f", Format: "copy"}, failing{from: 1 << 20, err: broken}, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, child)
	if !errors.Is(err, broken) || n == 0 {
		t.Errorf("%d bytes and %v", n, err)
	}
	_ = child.Close()
}

// silent answers nothing until its reader gives up.
type silent struct{}

func (silent) ReadAt(ctx context.Context, _ []byte, _ int64) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestSilentSourceMeetsTheDeadline(t *testing.T) {
	c := testChildren(t, Options{Deadline: 300 * time.Millisecond})
	child, err := c.Start(t.Context(), Spec{Name: "f", Format: "copy"}, silent{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(child); !errors.Is(err, ErrDeadline) {
		t.Errorf("got %v", err)
	}
	_ = child.Close()
}

func TestChildHasNothingOfItsParent(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hidden")
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	c := testChildren(t, Options{})
	child := start(t, c, "world", "")
	text, err := io.ReadAll(child)
	if err != nil {
		t.Fatal(err)
	}
	_ = child.Close()
	held := 0
	for line := range strings.Lines(string(text)) {
		words := append(strings.Fields(line), "", "")
		switch {
		case words[0] == "env" && strings.Contains(line, "AWS"), words[0] == "cwd" && words[1] != "/":
			t.Errorf("it has %s", line)
		case words[0] == "fd" && (strings.HasPrefix(words[2], "pipe:") || strings.HasPrefix(words[2], "socket:")):
			held++
		case words[0] == "fd" && strings.HasPrefix(words[2], "/") && !strings.HasPrefix(words[2], "/sys/fs/cgroup/"): // the runtime's own
			t.Errorf("it has %s", line)
		case words[0] == "NoNewPrivs:" && words[1] != "1":
			t.Errorf("it may gain privileges")
		}
	}
	if held != 3 {
		t.Errorf("it has %d pipes and sockets:\n%s", held, text)
	}
}

func TestChildEndsWithItsParent(t *testing.T) {
	for _, what := range []string{"loop", "hang"} {
		t.Run(what, func(t *testing.T) {
			parent, text := startParent(t, what)
			pid, err := strconv.Atoi(firstLine(t, text))
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			gone(t, pid)
		})
	}
}

// startParent runs this test as a parent of a child that does what.
func startParent(tb testing.TB, what string) (*exec.Cmd, io.Reader) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "/proc/self/exe", "parent", what)
	cmd.Stderr = os.Stderr
	text, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return cmd, text
}
