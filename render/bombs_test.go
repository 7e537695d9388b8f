package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/renderfiles"
)

// TestBombsEndInTheirChild: small files that claim much, or are much, are shown as far as
// their reader wants or end in an error that says why, within the memory of a child; and
// others are read meanwhile.
func TestBombsEndInTheirChild(t *testing.T) {
	t.Parallel()
	c := testChildren(t, Options{Deadline: 30 * time.Second})
	whole := wholeFiles(t)[0]
	for _, b := range renderfiles.Bombs(t) {
		t.Run(b.Name, func(t *testing.T) {
			n, peaked, err := textOf(t, c, Spec{Name: b.Name}, b.Data, damagedText)
			bad := (*Error)(nil)
			switch {
			case b.Whole && (n < damagedText || err != nil):
				t.Errorf("%d bytes and %v, want its first %d", n, err, damagedText)
			case err == nil || b.Whole:
			case !errors.As(err, &bad):
				t.Errorf("%v, want an *Error", err)
			case strings.Contains(bad.Reason, "broke off"), strings.Contains(bad.Reason, "panic"):
				t.Errorf("%v, want a reason", err)
			}
			if peaked > shadow*childMemory {
				t.Errorf("the child took %d MiB", peaked>>20)
			}
			t.Logf("%d bytes, %d MiB, %v", n, peaked>>20, err)
		})
	}
	if n, _, err := textOf(t, c, Spec{Name: whole.Name}, whole.Data, damagedText); err != nil || n == 0 {
		t.Errorf("a whole file afterwards: %d bytes and %v", n, err)
	}
}

// TestDamagedFilesInTheirChild: what the rows of damaged files are taken by is the child
// alone, and its memory is bounded.
func TestDamagedFilesInTheirChild(t *testing.T) {
	t.Parallel()
	c := testChildren(t, Options{Deadline: 30 * time.Second})
	for i, f := range damaged(wholeFiles(t), 3, 60) {
		what := fmt.Sprintf("%d, %s with %s", i, f.Name, f.How)
		_, peaked, err := textOf(t, c, Spec{Name: f.Name, Format: f.Format}, f.Data, damagedText)
		if bad := (*Error)(nil); err != nil && (!errors.As(err, &bad) || strings.Contains(bad.Reason, "broke off")) {
			t.Errorf("%s: %v, want an *Error that says why", what, err)
		}
		if peaked > shadow*childMemory {
			t.Errorf("%s: the child took %d MiB", what, peaked>>20)
		}
	}
}

// TestTenThousandColumnsInAChild: rows of 10 MB are shown one after another, and two
// columns of them in full.
func TestTenThousandColumnsInAChild(t *testing.T) {
	t.Parallel()
	c := testChildren(t, Options{})
	data, err := os.ReadFile(renderfiles.Wide(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	n, peaked, err := textOf(t, c, Spec{Name: "wide.parquet"}, data, 25<<20)
	if n != 25<<20 || err != nil || peaked > shadow*childMemory {
		t.Errorf("all columns: %d bytes, %d MiB, %v", n, peaked>>20, err)
	}
	t.Logf("a child that shows 10,000 columns has %d MiB at most", peaked>>20)
	n, peaked, err = textOf(t, c, Spec{Name: "wide.parquet", Project: []string{"c09999", "c00000"}}, data, math.MaxInt64)
	if want := int64(2000 * (len(`{"c09999":"","c00000":""}`) + 1 + 2*1001)); n < want || err != nil || peaked > shadow*childMemory/2 {
		t.Errorf("two columns: %d bytes, %d MiB, %v, want %d bytes", n, peaked>>20, err, want)
	}
}

// textOf reads up to most bytes of a file's rows, as a child makes them, and tells how
// many there were, the child's peak of memory, and what ended them: nil for the end or
// most.
func textOf(t *testing.T, c *Children, s Spec, data []byte, most int64) (n, peaked int64, err error) {
	t.Helper()
	s.Kind, s.Output = KindRows, OutputJSONL
	child, err := c.Start(t.Context(), s, Whole(bytes.NewReader(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var last tail
	n, err = io.Copy(&last, io.LimitReader(child, most))
	if n == most {
		last = tail(highest(strconv.Itoa(child.cmd.Process.Pid))) // it stands
	}
	if closing := child.Close(); closing != nil {
		t.Error(closing)
	}
	gone(t, child.cmd.Process.Pid)
	if i := bytes.LastIndex(last, []byte("VmHWM:")); i >= 0 {
		_, scanned := fmt.Sscanf(string(last[i:]), "VmHWM: %d kB", &peaked)
		if scanned != nil {
			t.Fatalf("%q: %v", last[i:], scanned)
		}
	} else if err == nil {
		t.Errorf("it told no peak of memory: %q", last)
	}
	return n, peaked << 10, err
}

// highest is the line of a process's status that tells its peak of memory. What wait4
// tells is its parent's where that had more.
func highest(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	_, line, found := strings.Cut(string(text), "VmHWM:")
	if err != nil || !found {
		return fmt.Sprint("no VmHWM: ", err)
	}
	line, _, _ = strings.Cut(line, "\n")
	return "VmHWM:" + line
}

// tail is the end of what is written to it.
type tail []byte

func (b *tail) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	*b = (*b)[max(0, len(*b)-64):]
	return len(p), nil
}
