package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// duOf runs du and reads its JSON.
func duOf(t *testing.T, lake *mounttest.Lake, args ...string) (surveyed, mounttest.Result) {
	t.Helper()
	r := lake.Run(append([]string{"du", "--json"}, args...)...)
	var s surveyed
	if r.Out != "" {
		if err := json.Unmarshal([]byte(r.Out), &s); err != nil {
			t.Fatalf("%v: %q", err, r.Out)
		}
	}
	return s, r
}

// byPartition is "FILES BYTES ROWS UNCOUNTED" of each partition; ROWS "-" if none tells.
func byPartition(s surveyed) map[string]string {
	got := map[string]string{}
	for _, p := range s.Partitions {
		got[p.Partition] = p.text()
	}
	return got
}

func (c counts) text() string {
	rows := "-"
	if c.Rows != nil {
		rows = fmt.Sprint(*c.Rows)
	}
	return fmt.Sprint(c.Files, " ", c.Bytes, " ", rows, " ", c.Uncounted)
}

// orders is a table of Parquet files, and what is in it that is no data.
func orders(t *testing.T) mounttest.Options {
	t.Helper()
	ten, three := mounttest.Parquet(t, 10), mounttest.Parquet(t, 3)
	return mounttest.Options{Tables: []mounttest.Table{
		{Database: "sales", Name: "orders", Keys: []string{"dt:date", "_r"}, Files: map[string]string{
			"dt=2026-01-01/_r=eu/a.parquet": ten, "dt=2026-01-01/_r=eu/b.parquet": three, "dt=2026-01-01/_r=us/000000_0": ten,
			"dt=2026-01-02/_r=a b\x1b[2J/a.parquet": three, "dt=2026-01-02/_r=eu/": "", "dt=2026-01-02/_r=us/empty.parquet": "",
			"dt=2026-01-02/_r=us/_SUCCESS": "x", "dt=2026-01-02/_r=us/.a.parquet.crc": "crc", "dt=2026-01-02/_delta_log/0.json": "{}", "dt=2026-01-02/_r=us/_t/c.parquet": ten,
			"dt=2026-01-03/_r=eu/deep/er/c.parquet": ten,
		}},
		{Database: "sales", Name: "flat", Files: map[string]string{"a.parquet": ten, "b.parquet": three}},
		{Database: "sales", Name: "none", Files: map[string]string{"": ""}},
		{Database: "sales", Name: "text", Format: "csv", Keys: []string{"dt:date"}, Files: map[string]string{"dt=2026-01-01/a.csv": "1,one\n", "dt=2026-01-01/b.csv": ""}},
	}}
}

func TestDuByPartition(t *testing.T) {
	mounttest.FolderOnly(t, "it has empty directories")
	o := orders(t)
	o.Tables[2].Files = map[string]string{"sub/": ""}
	lake := mounttest.Mount(t, o)
	ten, three := len(mounttest.Parquet(t, 10)), len(mounttest.Parquet(t, 3))
	all := map[string]string{
		"dt=2026-01-01/_r=eu":         fmt.Sprintf("2 %d 13 0", ten+three),
		"dt=2026-01-01/_r=us":         fmt.Sprintf("1 %d 10 0", ten),
		"dt=2026-01-02/_r=a b\x1b[2J": fmt.Sprintf("1 %d 3 0", three),
		"dt=2026-01-02/_r=eu":         "0 0 0 0",
		"dt=2026-01-02/_r=us":         "1 0 0 0",
		"dt=2026-01-03/_r=eu":         fmt.Sprintf("1 %d 10 0", ten),
	}
	for _, tt := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{"sales/orders"}, all},
		{[]string{"sales/orders", "--depth=7"}, all},
		{[]string{"sales/orders", "--depth=1"}, map[string]string{
			"dt=2026-01-01": fmt.Sprintf("3 %d 23 0", 2*ten+three), "dt=2026-01-02": fmt.Sprintf("2 %d 3 0", three), "dt=2026-01-03": fmt.Sprintf("1 %d 10 0", ten),
		}},
		{[]string{"sales/orders", "--depth=0"}, map[string]string{".": fmt.Sprintf("6 %d 36 0", 3*ten+2*three)}},
		{[]string{"sales/orders/dt=2026-01-03"}, map[string]string{"dt=2026-01-03/_r=eu": all["dt=2026-01-03/_r=eu"]}},
		{[]string{"sales/orders/dt=2026-01-03/_r=eu/deep"}, map[string]string{"dt=2026-01-03/_r=eu": all["dt=2026-01-03/_r=eu"]}},
		{[]string{"sales/flat"}, map[string]string{".": fmt.Sprintf("2 %d 13 0", ten+three)}},
		{[]string{"sales/flat", "--no-rows"}, map[string]string{".": fmt.Sprintf("2 %d - 2", ten+three)}},
		{[]string{"sales/none"}, map[string]string{".": "0 0 0 0"}},
		{[]string{"sales/text"}, map[string]string{"dt=2026-01-01": "2 6 0 1"}},
	} {
		tt.args[0] = lake.Path(tt.args[0])
		s, r := duOf(t, lake, tt.args...)
		if got := byPartition(s); r.Code != exitOK || r.Err != "" || !maps.Equal(got, tt.want) || s.Interrupted || len(s.Failed) > 0 {
			t.Errorf("%q: exit code %d, %v, want %v; %q", tt.args, r.Code, got, tt.want, r.Err)
		}
		var total counts
		for _, p := range s.Partitions {
			total.add(p.counts)
		}
		if got, want := s.Total.text(), total.text(); got != want {
			t.Errorf("%q: total %s, want %s", tt.args, got, want)
		}
	}
	r := lake.Run("du", lake.Path("sales/orders"))
	for _, want := range []string{"PARTITION ", "\ndt=2026-01-01/_r=eu ", `\x1b[2J" `, "\ntotal "} {
		if !strings.Contains(r.Out, want) || r.Err != "" || strings.Contains(r.Out, "\x1b") {
			t.Errorf("du printed %q %q, want %q", r.Out, r.Err, want)
		}
	}
	widths := map[int]bool{}
	for line := range strings.Lines(r.Out) {
		widths[len(line)] = true
	}
	if len(widths) != 1 {
		t.Errorf("lines are not aligned:\n%s", r.Out)
	}
	if r := lake.Run("du", lake.Path("sales/text")); r.Code != exitOK || !regexp.MustCompile(`(?m)^total +2 +6 B +0\+  \(rows of 1 file not counted\)$`).MatchString(r.Out) {
		t.Errorf("of text: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
}

// TestDuByEachPartitionsFormat: rows come by the partition's own format, not by the
// table's, and files of an unknown one tell it themselves.
func TestDuByEachPartitionsFormat(t *testing.T) {
	orc, err := os.ReadFile("../../format/testdata/arrow-zlib.orc")
	if err != nil {
		t.Fatal(err)
	}
	five := mounttest.Parquet(t, 5)
	partition := func(value, format, name, content string) mounttest.GluePartition {
		return mounttest.GluePartition{Values: []string{value}, Format: format, Files: map[string]string{name: content}}
	}
	table := func(name, format string, partitions ...mounttest.GluePartition) mounttest.GlueTable {
		return mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: name, Format: format, Keys: []string{"dt"}}, Partitions: partitions}
	}
	lake := mounttest.Mount(t, mounttest.Options{Glue: &mounttest.Glue{Tables: []mounttest.GlueTable{
		table("mixed", "csv", partition("1", "parquet", "a", five), partition("2", "orc", "a", string(orc)), partition("3", "csv", "a", five), partition("4", "avro", "a", "Obj\x01")),
		table("moved", "csv", partition("1", "parquet", "a", five)),
	}}})
	s, r := duOf(t, lake, lake.Path("db/mixed"))
	want := map[string]string{
		"dt=1": fmt.Sprintf("1 %d 5 0", len(five)), "dt=3": fmt.Sprintf("1 %d - 1", len(five)), "dt=4": "1 4 - 1",
		"dt=2": byPartition(s)["dt=2"],
	}
	if got := byPartition(s); r.Code != exitOK || !maps.Equal(got, want) || !regexp.MustCompile(`^1 \d+ [1-9]\d* 0$`).MatchString(got["dt=2"]) {
		t.Errorf("exit code %d, %v, want %v; %q", r.Code, got, want, r.Err)
	}
	for _, dir := range []string{"db/moved", "db/mixed/dt=1"} {
		if s, r = duOf(t, lake, lake.Path(dir)); r.Code != exitOK || s.Total.text() != want["dt=1"] {
			t.Errorf("%s: exit code %d, %+v, %q", dir, r.Code, s, r.Err)
		}
	}
}

// requestsOf counts what was asked of the keys with something in them: a mount's start
// asks for others, and may do so late.
func requestsOf(proxy *faulty.Proxy, part string) (counts map[string]int) {
	counts = map[string]int{}
	for _, q := range proxy.Log() {
		if strings.Contains(q.Key, part) {
			counts[q.Op]++
		}
	}
	return counts
}

// TestDuAsksOnce: the listings, and of each file one range at its end.
func TestDuAsksOnce(t *testing.T) {
	files := map[string]string{}
	large := mounttest.Parquet(t, 10)
	large = large[:4] + noise(1, 9<<20+100) + large[4:] // its pages lie elsewhere; the footer does not care
	for i := range 40 {
		files[fmt.Sprintf("dt=2026-01-%02d/a%d.parquet", i%4+1, i)] = mounttest.Parquet(t, i)
	}
	for i := range 6 {
		files[fmt.Sprintf("dt=2026-01-09/large%d.parquet", i)] = large
		files[fmt.Sprintf("dt=2026-01-10/00000%d_0", i)] = large
	}
	files["dt=2026-01-08/a.csv"] = "x"
	lake, proxy := bucketLakeOf(t, func(o *mounttest.Options) {
		o.Tables = []mounttest.Table{{Database: "db", Name: "t", Keys: []string{"dt:date"}, Files: files}}
		o.Flags = []string{"--metadata-ttl=5m"}
	})
	lake.Start()
	lake.MustSh("ls db")
	proxy.Reset()
	s, r := duOf(t, lake, lake.Path("db/t"))
	if r.Code != exitFailed || s.Total.Files != 53 || s.Total.Rows == nil || *s.Total.Rows != 39*40/2+120 || len(s.Failed) != 1 || !strings.HasSuffix(s.Failed[0].Path, "a.csv") {
		t.Errorf("exit code %d, %+v, %q", r.Code, s, r.Err)
	}
	asked := map[string]int{}
	var sent int64
	for _, q := range proxy.Log() {
		if q.Op == "GetObject" {
			asked[q.Key]++
			sent += q.Sent
		}
	}
	for key, n := range asked {
		if n > 1 {
			t.Errorf("%s: %d GETs", key, n)
		}
	}
	got := requestsOf(proxy, "_data/db/t/")
	if got["HeadObject"] > 0 || got["GetObject"] != len(files) || got["ListObjectsV2"] > 12 || sent > 4<<20 {
		t.Errorf("du asked %v, and was sent %d bytes, want %d GETs, the listings and no HEAD", got, sent, len(files))
		for _, q := range proxy.Log() {
			t.Logf("%s %s %s %d", q.Op, q.Key, q.Range, q.Sent)
		}
	}
	proxy.Reset()
	if _, r := duOf(t, lake, "--no-rows", lake.Path("db/t")); r.Code != exitOK || requestsOf(proxy, "dt=")["GetObject"]+requestsOf(proxy, "dt=")["HeadObject"] > 0 {
		t.Errorf("--no-rows: exit code %d, asked %v", r.Code, proxy.Counts())
	}
	lake.Unmount()
}

// TestDuThatFails: the others are counted, and each that is not is named.
func TestDuThatFails(t *testing.T) {
	lake, proxy := bucketLakeOf(t, func(o *mounttest.Options) {
		o.Tables = []mounttest.Table{{Database: "db", Name: "t", Keys: []string{"dt:date"}, Files: map[string]string{
			"dt=2026-01-01/a.parquet": mounttest.Parquet(t, 4), "dt=2026-01-01/denied.parquet": mounttest.Parquet(t, 4),
			"dt=2026-01-01/cut.parquet": mounttest.Parquet(t, 4)[:100], "dt=2026-01-02/a.parquet": mounttest.Parquet(t, 4),
		}}}
	})
	proxy.Add(faulty.Rule{Op: "GetObject", If: ofKey("denied.parquet"), Fault: faulty.Status{Code: 403, S3Code: "AccessDenied"}})
	proxy.Add(faulty.Rule{Op: "ListObjectsV2", If: func(q *faulty.Request) bool { return strings.Contains(q.Key, "2026-01-02") }, Fault: faulty.Status{Code: 403, S3Code: "AccessDenied"}})
	lake.Start()
	s, r := duOf(t, lake, lake.Path("db/t"))
	if r.Code != exitFailed || len(s.Failed) != 3 || s.Total.Rows == nil || *s.Total.Rows != 4 || s.Total.Files != 3 || s.Total.Uncounted != 2 {
		t.Errorf("exit code %d, %+v", r.Code, s)
	}
	for _, want := range []string{`denied.parquet": permission denied`, `cut.parquet": "cut.parquet" is not a complete parquet file`, `dt=2026-01-02": permission denied`} {
		if !strings.Contains(r.Err, want) {
			t.Errorf("stderr %q lacks %q", r.Err, want)
		}
	}
	if r := lake.Run("du", lake.Path("db/t")); r.Code != exitFailed || !regexp.MustCompile(`(?m)^dt=2026-01-02 +- +- +-\ntotal +3\+ .*B\+ +4\+  \(rows of 2 files not counted\)$`).MatchString(r.Out) {
		t.Errorf("exit code %d, %q", r.Code, r.Out)
	}
	lake.Unmount()
}

// TestDuIsInterrupted at once, while the store does not answer.
func TestDuIsInterrupted(t *testing.T) {
	lake, proxy := bucketLakeOf(t, func(o *mounttest.Options) {
		o.Tables = []mounttest.Table{{Database: "db", Name: "t", Keys: []string{"dt"}, Files: map[string]string{
			"dt=1/a.parquet": "", "dt=1/b.parquet": mounttest.Parquet(t, 4), "dt=2/a.parquet": mounttest.Parquet(t, 4),
		}}}
	})
	lake.Start()
	held := proxy.Add(faulty.Rule{Op: "GetObject", If: ofKey("b.parquet"), Fault: faulty.Hang{}})
	unlisted := proxy.Add(faulty.Rule{Op: "ListObjectsV2", If: func(q *faulty.Request) bool { return strings.Contains(q.Key, "dt=2") }, Fault: faulty.Hang{}})
	cmd := exec.CommandContext(t.Context(), lake.Binary(), "du", "--json", lake.Path("db/t"))
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held.Wait(t, 1)
	unlisted.Wait(t, 1)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit code tells
	}()
	select {
	case <-done:
		if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("exit code %d, %q", cmd.ProcessState.ExitCode(), errs.String())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	held.Remove()
	unlisted.Remove()
	wantParts(t, out.String())
	lake.Unmount()
}

// wantParts looks for what a du had of two partitions, of which the second was not listed.
func wantParts(t *testing.T, document string) {
	t.Helper()
	var s surveyed
	if err := json.Unmarshal([]byte(document), &s); err != nil {
		t.Fatalf("%v: %q", err, document)
	}
	size := len(mounttest.Parquet(t, 4))
	want := map[string]string{"dt=1": fmt.Sprintf("2 %d 0 1", size), "dt=2": "0 0 - 0"}
	if got := byPartition(s); !s.Interrupted || !maps.Equal(got, want) || !s.Partitions[1].Partial || !s.Total.Partial || s.Total.Uncounted != 1 {
		t.Fatalf("counted %v, want %v; %s", got, want, document)
	}
	var text strings.Builder
	(&program{stdout: &text}).printCounts(s, duFlags{depth: -1})
	for _, want := range []string{`(?m)^dt=1 +2\+? .* 0\+$`, `(?m)^dt=2 +- +- +-$`, `(?m)^total +2\+ .*B\+ +0\+  \(rows of 1 file not counted\)$`} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("it shows, want %s:\n%s", want, text.String())
		}
	}
}

// TestDuOfWhatIsNoTable says what to name.
func TestDuOfWhatIsNoTable(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	lake.PutManifest("broken/cut", `{"manifest_version": 1, "name": "c`)
	lake.Start()
	for path, want := range map[string]string{
		"":                                "DATABASE/TABLE",
		"sales":                           "sales/TABLE",
		"sales/none":                      "no such table",
		"sales/notes.json":                "is a file",
		"sales/notes/dt=2026-01-01/a.csv": "is a file",
		"sales/notes/.lakefs":             "holds none",
		"broken/cut":                      "cannot be read: manifest",
	} {
		if r := lake.Run("du", lake.Path(path)); r.Code != exitFailed || !strings.Contains(r.Err, want) || r.Out != "" {
			t.Errorf("%q: exit code %d, %q %q, want %q", path, r.Code, r.Out, r.Err, want)
		}
	}
	for _, args := range [][]string{{"du"}, {"du", "a", "b"}, {"du", "--depth=-2", lake.Root}, {"du", "--depth=x", lake.Root}} {
		if r := lake.Run(args...); r.Code != exitUsage {
			t.Errorf("%q: exit code %d, %q", args, r.Code, r.Err)
		}
	}
	if r := lake.Run("du", t.TempDir()); r.Code != exitFailed || !strings.Contains(r.Err, "in no mount") {
		t.Errorf("outside: exit code %d, %q", r.Code, r.Err)
	}
}

// TestDuShowsItsProgressOnATerminalAlone: the bar has the files that are done.
func TestDuShowsItsProgressOnATerminalAlone(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("no script(1) here, which makes a terminal")
	}
	lake, proxy := bucketLakeOf(t, func(o *mounttest.Options) {
		o.Tables = []mounttest.Table{{Database: "db", Name: "t", Files: map[string]string{"a.parquet": mounttest.Parquet(t, 4), "b.parquet": mounttest.Parquet(t, 4)}}}
	})
	lake.Start()
	held := proxy.Add(faulty.Rule{Op: "GetObject", If: ofKey("b.parquet"), Fault: faulty.Hang{}})
	out, screen := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "screen")
	cmd := exec.CommandContext(t.Context(), "script", "-qefc", "stty cols 120; "+lake.Binary()+" du "+lake.Path("db/t")+" >"+out, screen)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bar := regexp.MustCompile(`files.*\(1/2, .*files/[a-z]+\)`)
	lake.Eventually("the bar shows the files", 30*time.Second, func() bool {
		raw, err := os.ReadFile(screen)
		return err == nil && bar.Match(raw)
	})
	held.Remove()
	if err := cmd.Wait(); err != nil {
		t.Errorf("du: %v", err)
	}
	if raw, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(raw), "PARTITION") || strings.Contains(string(raw), "%") {
		t.Errorf("stdout has %q (%v), want the table alone", raw, err)
	}
	lake.Unmount()
}
