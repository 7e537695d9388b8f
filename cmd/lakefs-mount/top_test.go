package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// lookAtSet is a look at what a set has, at so many seconds past an hour.
func lookAtSet(t *testing.T, s *metrics.Set, second int) look {
	t.Helper()
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 12, 0, second, 0, time.UTC)
	// Those of the process that runs the test are not the same each time.
	process := regexp.MustCompile(`(?m)^(process_start_time_seconds|process_resident_memory_bytes) .*$`)
	values := map[string]int64{"process_start_time_seconds": at.Unix() - 273_900, "process_resident_memory_bytes": 190 << 20}
	stats := process.ReplaceAllFunc(text.Bytes(), func(line []byte) []byte {
		name, _, _ := strings.Cut(string(line), " ")
		return fmt.Appendf(nil, "%s %d", name, values[name])
	})
	l, err := parseLook(stats)
	if err != nil {
		t.Fatal(err)
	}
	l.at = at
	return l
}

// busyMount are two looks at a mount that had something to do for two seconds.
func busyMount(t *testing.T) (earlier, later look) {
	t.Helper()
	s := metrics.NewSet(metrics.Build{Version: "v1.0.0"})
	times := func(n int, in float64, of interface{ Observe(float64) }) {
		for range n {
			of.Observe(in)
		}
	}
	bind := func(f *metrics.Func, value int64) { f.Bind(func() int64 { return value }) }
	for _, operation := range []string{"lookup", "getattr", "open", "read", "write", "flush", "release", "readdir"} {
		times(100, 0.0005, s.Operations.With(operation, metrics.OutcomeOK))
	}
	times(3, 0.02, s.Operations.With("open", metrics.OutcomeError))
	times(40, 0.02, s.StoreRequests.With("stat", metrics.OutcomeOK))
	times(7, 0.02, s.StoreRequests.With("list", metrics.OutcomeOK))
	bind(s.CacheHits, 900)
	bind(s.CacheMisses, 100)
	s.StoreRetries.Add(2)
	earlier = lookAtSet(t, s, 0)

	times(2400, 0.0004, s.Operations.With("read", metrics.OutcomeOK))
	times(60, 0.025, s.Operations.With("read", metrics.OutcomeOK))
	times(90, 0.0004, s.Operations.With("getattr", metrics.OutcomeOK))
	times(24, 0.002, s.Operations.With("lookup", metrics.OutcomeOK))
	times(8, 0.015, s.Operations.With("open", metrics.OutcomeOK))
	times(80, 0.0004, s.Operations.With("write", metrics.OutcomeOK))
	times(2, 0.2, s.Operations.With("flush", metrics.OutcomeOK))
	times(1, 0.2, s.Operations.With("flush", metrics.OutcomeError))
	times(60, 0.025, s.StoreRequests.With("read", metrics.OutcomeOK))
	times(20, 0.05, s.StoreRequests.With("part", metrics.OutcomeOK))
	times(2, 0.12, s.StoreRequests.With("complete", metrics.OutcomeOK))
	times(1, 12, s.StoreRequests.With("complete", metrics.OutcomeError))
	times(4, 0.04, s.CatalogRequests.With("GetTable", metrics.OutcomeOK))
	times(2, 0.15, s.CatalogRequests.With("BatchCreatePartition", metrics.OutcomeOK))
	times(2, 0.2, s.Publishes.With(metrics.OutcomeOK))
	times(1, 0.2, s.Publishes.With(metrics.OutcomeError))
	s.FileBytes.With(metrics.DirectionRead).Add(300 << 20)
	s.FileBytes.With(metrics.DirectionWritten).Add(20 << 20)
	s.StoreBytes.With(metrics.DirectionRead).Add(60 << 20)
	s.StoreBytes.With(metrics.DirectionWritten).Add(20 << 20)
	bind(s.CacheHits, 900+2400)
	bind(s.CacheMisses, 100+60)
	bind(s.CacheFetchedBytes, 60<<20)
	bind(s.DiskHits, 120)
	bind(s.DiskMisses, 40)
	bind(s.DiskBytes, 3<<30)
	bind(s.DiskLimit, 20<<30)
	bind(s.Memory.With(metrics.HolderBudget), 140<<20)
	bind(s.Memory.With(metrics.HolderCache), 128<<20)
	bind(s.Memory.With(metrics.HolderHeap), 160<<20)
	bind(s.MemoryLimit, 512<<20)
	bind(s.StagedWrites, 3)
	bind(s.StagedBytes, 12<<20)
	s.OpenHandles.Set(11)
	later = lookAtSet(t, s, 2)
	later.jobs = []fs.JobStatus{{Kind: "repair", Path: "sales/orders", Done: 120, Total: 365}}
	return earlier, later
}

func busyEntry() tableEntry { return tableEntry{path: "/mnt/lake", source: "s3://lake/wh/"} }

// pasts are rates before a look.
func pasts(last float64) (all []float64) {
	for i := range 24 {
		all = append(all, last*(1+math.Sin(float64(i)/3))/2)
	}
	return append(all, last)
}

// TestTopScreenIsInTheDocumentation as it is.
func TestTopScreenIsInTheDocumentation(t *testing.T) {
	earlier, later := busyMount(t)
	r := report(busyEntry(), earlier, later)
	screen := topScreen(r, topState{width: 80, height: 30, live: true, every: topEvery, mount: 1, mounts: 2, read: pasts(r.Read), written: pasts(r.Written)})
	documents(t, "$ lakefs-mount top /mnt/lake\n"+screen)
}

// documents checks that docs/operations.md shows a text of a terminal.
func documents(t *testing.T, text string) {
	t.Helper()
	raw, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "```\n"+strings.TrimRight(text, "\n")+"\n```\n") {
		t.Errorf("docs/operations.md does not show this:\n%s", text)
	}
}

func TestTopReport(t *testing.T) {
	earlier, later := busyMount(t)
	earlier.cost = 100 << 20
	r := report(busyEntry(), earlier, later)
	if r.Read != 100<<20 || r.Written != 10<<20 || r.StoreRead != 30<<20 || r.Uptime != 273_900 || r.Version != "v1.0.0" || r.Seconds != 2 {
		t.Errorf("report is %+v", r)
	}
	if r.Cache.HitRatio == nil || math.Abs(*r.Cache.HitRatio-2400.0/2460) > 1e-9 || math.Abs(*r.Cache.HitRatioTotal-3300.0/3460) > 1e-9 || *r.Cache.DiskHitRatio != 0.75 {
		t.Errorf("cache is %+v", r.Cache)
	}
	var names []string
	for _, k := range r.Operations {
		names = append(names, k.Kind)
		if k.Kind == "flush" && (k.PerSecond != 1.5 || k.Failed != 1 || k.FailedNow != 0.5 || k.Total != 103 || *k.P50 < 0.1 || *k.P50 > 0.3) {
			t.Errorf("flush is %+v", k)
		}
		if k.Kind == "readdir" && (k.PerSecond != 0 || k.P50 != nil || k.Total != 100) {
			t.Errorf("readdir is %+v", k)
		}
	}
	if got := strings.Join(names, " "); got != "flush getattr lookup open read readdir release write" {
		t.Errorf("operations are %s", got)
	}
	if same := report(busyEntry(), later, later); same.Read != 0 || same.Cache.HitRatio != nil {
		t.Errorf("between a look and itself: %+v", same)
	}
}

func TestQuantile(t *testing.T) {
	bounds := []float64{0.001, 0.01, 0.1, math.Inf(1)}
	for _, tt := range []struct {
		counts []float64
		q      float64
		want   float64
	}{
		{[]float64{10, 10, 10, 10}, 0.5, 0.0005},
		{[]float64{0, 10, 10, 10}, 0.5, 0.0055},
		{[]float64{5, 5, 10, 10}, 0.99, 0.1 - 0.09*0.02},
		{[]float64{0, 0, 0, 10}, 0.5, 0.1},
	} {
		if got := (distribution{bounds: bounds, counts: tt.counts}).quantile(tt.q); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("quantile %v of %v is %v, want %v", tt.q, tt.counts, got, tt.want)
		}
	}
}

func TestTopTexts(t *testing.T) {
	for of, want := range map[float64]string{0.0004: "<1ms", 0.0015: "1.5ms", 0.0099: "9.9ms", 0.00999: "10ms", 0.0999: "100ms", 0.9999: "1.0s", 9.99: "10s", 59: "59s", 60: ">60s"} {
		if got := secondsText(&of); got != want {
			t.Errorf("%v s is %s, want %s", of, got, want)
		}
	}
	for of, want := range map[float64]string{0: "0", 0.01: "<0.1", 1.5: "1.5", 250.4: "250", 99999: "99999", 123456: "123k"} {
		if got := countText(of); got != want {
			t.Errorf("%v is %s, want %s", of, got, want)
		}
	}
	for of, want := range map[float64]string{-3: "0s", 59: "59s", 3600: "1h0m", 273_900: "3d4h"} {
		if got := upText(of); got != want {
			t.Errorf("%v s up is %s, want %s", of, got, want)
		}
	}
	if got := sparkline([]float64{9, 0, 1, 2}, 3, false) + sparkline([]float64{0, 0}, 9, true); got != "▁▄█__" {
		t.Errorf("sparklines are %s", got)
	}
}

// TestTopFitsAnyTerminal, and nothing that comes from the lake drives it.
func TestTopFitsAnyTerminal(t *testing.T) {
	earlier, later := busyMount(t)
	later.jobs = append(later.jobs, fs.JobStatus{Kind: "ev\x1bil", Path: "a\x1b[2J"}, fs.JobStatus{Path: "日本\u202e"}, fs.JobStatus{}, fs.JobStatus{})
	r := report(tableEntry{path: "/mnt/\x1b[2Jlake" + strings.Repeat("x", 70), source: "s3://日本/\n"}, earlier, later)
	for width := 1; width < 200; width += 7 {
		for height := 1; height < 60; height += 3 {
			for _, on := range []paint{false, true} {
				screen := topScreen(r, topState{width: width, height: height, live: true, paint: on, read: pasts(r.Read), waiting: time.Minute})
				lines := strings.Split(screen, "\n")
				if len(lines) > height {
					t.Fatalf("%d × %d: %d lines", width, height, len(lines))
				}
				for _, line := range lines {
					if ansi.StringWidth(line) > width {
						t.Fatalf("%d × %d: the line %q is wider", width, height, line)
					}
				}
				plain := ansi.Strip(screen)
				if !bool(on) && plain != screen || strings.ContainsAny(plain, "\x1b\u202e") {
					t.Fatalf("%d × %d: it drives the terminal: %q", width, height, screen)
				}
			}
		}
	}
}

// modelOf is a live view of mounts that answer what answer says.
func modelOf(t *testing.T, answer func(tableEntry) (look, error), paths ...string) *topModel {
	t.Helper()
	earlier, _ := busyMount(t)
	m := &topModel{lookAt: answer, state: topState{every: topEvery, width: 80, height: 40}}
	for _, path := range paths {
		m.mounts = append(m.mounts, &topMount{entry: tableEntry{path: path}, last: &earlier})
	}
	return m
}

func (m *topModel) press(t *testing.T, key tea.Key) tea.Cmd {
	t.Helper()
	_, cmd := m.Update(tea.KeyPressMsg(key))
	return cmd
}

func TestTopKeys(t *testing.T) {
	_, later := busyMount(t)
	m := modelOf(t, func(tableEntry) (look, error) { return later, nil }, "/a", "/b")
	screen := func() string { return m.View().Content }
	m.press(t, tea.Key{Code: '+', Text: "+"})
	if m.state.every != 5*time.Second || !strings.Contains(screen(), "every 5s") {
		t.Errorf("after +: every %v", m.state.every)
	}
	for range 9 {
		m.press(t, tea.Key{Code: '-', Text: "-"})
	}
	if m.state.every != 500*time.Millisecond {
		t.Errorf("after many -: every %v", m.state.every)
	}
	m.state.every = 3 * time.Second
	m.press(t, tea.Key{Code: '+', Text: "+"})
	if m.state.every != 5*time.Second {
		t.Errorf("after + from 3 s: every %v", m.state.every)
	}
	m.press(t, tea.Key{Code: 'p', Text: "p"})
	if _, cmd := m.Update(topTick{m.turn}); cmd != nil || !strings.Contains(screen(), "PAUSED") {
		t.Error("it looks while it pauses")
	}
	if m.press(t, tea.Key{Code: 'p', Text: "p"}) == nil || strings.Contains(screen(), "PAUSED") {
		t.Error("it does not go on")
	}
	if cmd := m.press(t, tea.Key{Code: tea.KeyTab}); cmd == nil || !strings.Contains(screen(), "/b") || !strings.Contains(screen(), "2 of 2") {
		t.Errorf("after tab it shows %s", screen())
	}
	m.press(t, tea.Key{Code: tea.KeyTab})
	if !strings.Contains(screen(), "/a") || !strings.Contains(screen(), "1 of 2") {
		t.Errorf("after two tabs it shows %s", screen())
	}
	for _, key := range []tea.Key{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		cmd := m.press(t, key)
		if cmd == nil {
			t.Fatalf("%v does not end it", key)
		}
		if _, ends := cmd().(tea.QuitMsg); !ends {
			t.Errorf("%v does not end it", key)
		}
	}
	if m.err != nil {
		t.Errorf("a key that ends it is the error %v", m.err)
	}
}

func TestTopLooksAgainAfterEachAnswerAlone(t *testing.T) {
	_, later := busyMount(t)
	m := modelOf(t, func(tableEntry) (look, error) { return later, nil }, "/a", "/b")
	ask := m.look()
	if ask == nil {
		t.Fatal("it does not ask")
	}
	if again := m.look(); again != nil {
		t.Error("it asks a mount that has not answered yet")
	}
	m.mounts[0].asked = time.Now().Add(-time.Minute)
	if screen := m.View().Content; !strings.HasPrefix(screen, "NO ANSWER for 1m0s  /a") {
		t.Errorf("a mount that does not answer is shown as %s", screen)
	}
	_, tick := m.Update(ask())
	if tick == nil || len(m.mounts[0].read) != 1 || m.mounts[0].report.Read == 0 || strings.Contains(m.View().Content, "NO ANSWER") {
		t.Errorf("after the answer: %+v", m.mounts[0].report)
	}
	if _, cmd := m.Update(topTick{m.turn - 1}); cmd != nil {
		t.Error("a tick of an earlier turn has it look")
	}
	ask = m.look()
	m.press(t, tea.Key{Code: tea.KeyTab})
	if _, cmd := m.Update(ask()); cmd != nil || len(m.mounts[0].read) != 1 || !m.mounts[0].asked.IsZero() {
		t.Error("the answer of a mount that is not shown counts")
	}
}

func TestTopEndsWithTheMount(t *testing.T) {
	m := modelOf(t, func(tableEntry) (look, error) { return look{}, errEnded }, "/a")
	_, cmd := m.Update(m.look()())
	if cmd == nil || !errors.Is(m.err, errEnded) {
		t.Fatalf("the error is %v, want %v", m.err, errEnded)
	}
	if _, ends := cmd().(tea.QuitMsg); !ends {
		t.Error("it goes on")
	}
}

// TestTopOfAMount without a terminal.
func TestTopOfAMount(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv")
	for _, args := range [][]string{{"--once"}, nil} {
		r := lake.Run(append(append([]string{"top", "--interval=100ms"}, args...), lake.Root)...)
		if r.Code != 0 || !strings.HasPrefix(r.Out, lake.Root+"  ") || !strings.Contains(r.Out, "OPERATIONS") || !strings.Contains(r.Out, "; 1 staged, ") || strings.Contains(r.Out, "\x1b") {
			t.Errorf("top %q: exit code %d, %s %s", args, r.Code, r.Out, r.Err)
		}
	}
	r := lake.Run("top", "--json", "--once", "--interval=100ms", lake.Root)
	var of topReport
	if err := json.Unmarshal([]byte(r.Out), &of); err != nil || r.Code != 0 || strings.Count(r.Out, "\n") != 1 {
		t.Fatalf("top --json --once: exit code %d, %q (%v) %s", r.Code, r.Out, err, r.Err)
	}
	if of.MountPoint != lake.Root || of.Staged != 1 || of.Seconds < 0.1 || of.Uptime <= 0 || len(of.Operations) == 0 || of.Memory.Resident == 0 {
		t.Errorf("report is %+v", of)
	}
	many := lake.Exec("bash", "-c", lake.Binary()+" top --json --interval=100ms "+lake.Root+" | head -3")
	if strings.Count(many.Out, `{"mountpoint"`) != 3 {
		t.Errorf("three lines of top --json are %q %s", many.Out, many.Err)
	}
	root := lake.Root
	lake.Unmount()
	if r := lake.Run("top", "--once", root); r.Code != exitFailed || !strings.Contains(r.Err, "in no mount") {
		t.Errorf("where nothing is mounted: exit code %d, %q", r.Code, r.Err)
	}
}

func TestTopInterval(t *testing.T) {
	if _, stderr, code := call(t, "lakefs-mount", nil, "top", "--interval=1ms"); code != exitUsage || !strings.Contains(stderr, "100ms to 1h") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

func TestTopOnATerminal(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	for name, env := range map[string][]string{"colours": nil, "none": {"NO_COLOR=1"}} {
		r := startOnTerminal(t, lake, env, "top", "--interval=200ms", lake.Root)
		r.sees(lake.Root)
		r.sees("OPERATIONS")
		r.press("p")
		r.sees("PAUSED")
		r.press("q")
		if code := r.ends(); code != 0 || !strings.Contains(r.shown(), "\x1b[?1049l") {
			t.Errorf("%s: exit code %d, %q, want 0 and the screen that was there before", name, code, r.shown())
		}
		if painted := regexp.MustCompile(`\x1b\[(\d+;)*3[0-7]m`).MatchString(r.shown()); painted != (env == nil) {
			t.Errorf("%s: %q", name, r.shown())
		}
	}
	r := startOnTerminal(t, lake, []string{"TERM=dumb"}, "top", "--interval=200ms", lake.Root)
	if code := r.ends(); code != 0 || strings.Contains(r.shown(), "\x1b") || !strings.Contains(r.shown(), "OPERATIONS") {
		t.Errorf("on a dumb terminal: exit code %d, %q, want one plain screen", code, r.shown())
	}
}

func TestTopOnATerminalOutlivesNoMount(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	r := startOnTerminal(t, lake, nil, "top", "--interval=200ms", lake.Root)
	r.sees("OPERATIONS")
	lake.Kill()
	if code := r.ends(); code != exitFailed || !strings.Contains(r.shown(), "does not answer") {
		t.Errorf("exit code %d, %q, want %d and why", code, r.shown(), exitFailed)
	}
	lake.Start()
	r = startOnTerminal(t, lake, nil, "top", "--interval=100ms", lake.Root)
	r.sees("OPERATIONS")
	if unmount := lake.Run("unmount", lake.Root); unmount.Code != 0 { // however often it is looked at
		t.Errorf("unmount: exit code %d, %s", unmount.Code, unmount.Err)
	}
	lake.Wait()
	if code := r.ends(); code != exitFailed || !strings.Contains(r.shown(), "it has ended") {
		t.Errorf("exit code %d, %q, want %d and why", code, r.shown(), exitFailed)
	}
}

// TestTopOfAHungMount says so, takes keys, and ends at once.
func TestTopOfAHungMount(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	r := startOnTerminal(t, lake, nil, "top", "--interval=200ms", lake.Root)
	r.sees("OPERATIONS")
	lake.Stop()
	defer lake.Signal(syscall.SIGCONT)
	r.sees("NO ANSWER for")
	r.press("p")
	r.sees("p go on")
	r.press("\x03")
	if code := r.ends(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	var both sync.WaitGroup // each waits as long as a mount is waited for
	both.Go(func() {
		if once := lake.Run("top", "--once", lake.Root); once.Code != exitFailed || !strings.Contains(once.Err, "no answer within") {
			t.Errorf("top --once: exit code %d, %q", once.Code, once.Err)
		}
	})
	both.Go(func() {
		if status := lake.Run("status", lake.Root); status.Code != 0 || !strings.Contains(status.Out, "stuck") {
			t.Errorf("status: exit code %d, %q", status.Code, status.Out)
		}
	})
	both.Wait()
}
