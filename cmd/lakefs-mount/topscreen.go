package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// topState is how the screen of top is to look.
type topState struct {
	width, height int // of the terminal; height 0: as long as it gets
	paint         paint
	ascii         bool // nothing else, where the locale has no more
	live          bool // with keys; else for a file or a pipe
	every         time.Duration
	paused        bool
	waiting       time.Duration // for the mount's answer, where it is slow
	mount, mounts int           // which of how many, from 1
	read, written []float64     // rates at each look, the last one last
}

// Widths of a table's columns beside the kind.
const (
	topNumbers = 24
	topTwo     = 80 // from here on there are two tables side by side
)

// topScreen draws a report, in lines of at most the terminal's width, and not more than
// it has.
func topScreen(r topReport, s topState) string {
	lines := append(topHead(r, s), topSums(r, s)...)
	lines = append(lines, "")
	room := 0
	if s.height > 0 {
		room = max(s.height-len(lines)-2, 3)
	}
	lines = append(lines, topTables(r, s, room)...)
	if s.live {
		if s.height > 0 {
			lines = lines[:min(len(lines), max(s.height-1, 0))]
		}
		lines = append(lines, topKeys(s))
	}
	for i, line := range lines {
		if s.width > 0 {
			line = ansi.Truncate(line, s.width, "")
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

func topHead(r topReport, s topState) []string {
	line := s.paint.in(bold, quoted(r.MountPoint)) + "  " + quoted(r.Source)
	line += fmt.Sprintf("  %s, up %s", printable(r.Version), upText(r.Uptime))
	switch {
	case s.waiting > 0:
		line = s.paint.in(red, fmt.Sprintf("NO ANSWER for %v", s.waiting.Truncate(time.Second))) + "  " + line
	case s.paused:
		line = s.paint.in(yellow, "PAUSED") + "  " + line
	}
	return []string{line, ""}
}

// topSums are the lines of what is one number for the whole mount.
func topSums(r topReport, s topState) []string {
	name := func(text string) string { return s.paint.in(bold, fmt.Sprintf("%-9s", text)) }
	flow := func(what string, now float64, before []float64) string {
		line := name(what) + fmt.Sprintf("%12s", rateText(now))
		if len(before) > 1 {
			line += "  " + s.paint.in(cyan, sparkline(before, max(s.width-40, 10), s.ascii)) + "  most " + rateText(slices.Max(before))
		}
		return line
	}
	cache := "nothing read through it yet"
	if r.Cache.HitRatioTotal != nil {
		cache = fmt.Sprintf("%s hits, %s since the start, %s fetched", ratioText(r.Cache.HitRatio), ratioText(r.Cache.HitRatioTotal), rateText(r.Cache.Fetched))
	}
	lines := []string{
		flow("READ", r.Read, s.read),
		flow("WRITTEN", r.Written, s.written),
		name("STORE") + fmt.Sprintf("%12s read, %s written, %.0f retries", rateText(r.StoreRead), rateText(r.StoreWritten), r.StoreRetries),
		name("CACHE") + cache,
		name("MEMORY") + fmt.Sprintf("%s of %s (cache %s), heap %s, resident %s", bytesText(r.Memory.Budget), bytesText(r.Memory.Limit),
			bytesText(r.Memory.Cache), bytesText(r.Memory.Heap), bytesText(r.Memory.Resident)),
		name("FILES") + fmt.Sprintf("%.0f open; %.0f staged, %s; %.0f local", r.OpenHandles, r.Staged, bytesText(r.StagedBytes), r.Local),
	}
	if r.Cache.DiskLimit > 0 {
		lines = append(lines, name("DISK")+fmt.Sprintf("%s of %s, %s hits", bytesText(r.Cache.DiskBytes), bytesText(r.Cache.DiskLimit), ratioText(r.Cache.DiskHitRatio)))
	}
	for _, j := range r.Jobs[:min(len(r.Jobs), 3)] {
		line := name("JOB") + fmt.Sprintf("%s %s: %d", printable(j.Kind), quoted(j.Path), j.Done)
		if j.Total > 0 {
			line += fmt.Sprintf(" of %d", j.Total)
		}
		lines = append(lines, line)
	}
	if more := len(r.Jobs) - 3; more > 0 {
		lines = append(lines, name("JOB")+fmt.Sprintf("and %d more", more))
	}
	return lines
}

// topTables are operations beside requests, or above them where that is too wide, in at
// most room lines (0: any).
func topTables(r topReport, s topState, room int) []string {
	if s.width < topTwo {
		wide, half := max(s.width, topNumbers+10), room/2
		return append(append(kindTable("OPERATIONS", r.Operations, s.paint, wide, half), ""), requestTables(r, s.paint, wide, half)...)
	}
	wide := min((s.width-2)/2, 60)
	left, right := kindTable("OPERATIONS", r.Operations, s.paint, wide, room), requestTables(r, s.paint, wide, room)
	var lines []string
	for i := range max(len(left), len(right)) {
		var a, b string
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		lines = append(lines, a+strings.Repeat(" ", max(wide-ansi.StringWidth(a), 0)+2)+b)
	}
	return lines
}

// requestTables are what the mount asks of others, in at most room lines (0: any), of
// which the store's have most.
func requestTables(r topReport, on paint, wide, room int) []string {
	var rest []string
	if len(r.CatalogRequests) > 0 {
		rest = append(rest, "")
		rest = append(rest, kindTable("CATALOG", r.CatalogRequests, on, wide, room/3)...)
	}
	if r.Publishes.Total > 0 {
		rest = append(rest, "")
		rest = append(rest, kindTable("PUBLISHES", []topKind{r.Publishes}, on, wide, 0)...)
	}
	if room > 0 {
		rest = rest[:min(len(rest), max(room-3, 0))]
		room -= len(rest)
	}
	return append(kindTable("STORE", r.StoreRequests, on, wide, room), rest...)
}

// kindTable has a line for each kind, in at most room lines (0: any); what is left out are
// those with the least to tell.
func kindTable(title string, kinds []topKind, on paint, wide, room int) []string {
	names := wide - topNumbers
	lines := []string{on.in(bold, fmt.Sprintf("%-*s%6s%6s%6s%6s", names, title, "/S", "P50", "P99", "ERR"))}
	shown, left := kinds, 0
	if room > 0 && len(kinds) > room-1 {
		shown, left = busiest(kinds, max(room-2, 1))
	}
	for _, k := range shown {
		failed := fmt.Sprintf("%6.0f", k.Failed)
		switch {
		case k.FailedNow > 0:
			failed = on.in(red, failed)
		case k.Failed > 0:
			failed = on.in(yellow, failed)
		}
		line := fmt.Sprintf("%-*s%6s%6s%6s", names, ansi.Truncate(printable(k.Kind), names-1, "~"), countText(k.PerSecond), secondsText(k.P50), secondsText(k.P99))
		if k.PerSecond == 0 {
			line = on.in(faint, line)
		}
		lines = append(lines, line+failed)
	}
	if left > 0 {
		lines = append(lines, on.in(faint, fmt.Sprintf("and %d more", left)))
	}
	return lines
}

// busiest are the n kinds that happened most, in the order that they had.
func busiest(kinds []topKind, n int) (shown []topKind, left int) {
	by := slices.Clone(kinds)
	slices.SortStableFunc(by, func(a, b topKind) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(b.Total, a.Total))
	})
	by = by[:min(n, len(by))]
	slices.SortFunc(by, func(a, b topKind) int { return strings.Compare(a.Kind, b.Kind) })
	return by, len(kinds) - len(by)
}

func topKeys(s topState) string {
	keys := fmt.Sprintf("q quit   p pause   + - every %v", s.every)
	if s.paused {
		keys = fmt.Sprintf("q quit   p go on   + - every %v", s.every)
	}
	if s.mounts > 1 {
		keys += fmt.Sprintf("   tab the next mount (%d of %d)", s.mount, s.mounts)
	}
	return s.paint.in(faint, keys)
}

// sparkline draws the last values, at most n, each against the largest.
func sparkline(values []float64, n int, ascii bool) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	if ascii {
		steps = []rune("_.-:=+*#")
	}
	values = values[max(len(values)-n, 0):]
	most := slices.Max(values)
	var b strings.Builder
	for _, v := range values {
		step := 0
		if most > 0 {
			step = int(v / most * float64(len(steps)-1))
		}
		b.WriteRune(steps[min(max(step, 0), len(steps)-1)])
	}
	return b.String()
}

// bytesText is sizeText in three digits or four.
func bytesText(n float64) string {
	text := sizeText(int64(n))
	if whole, unit, found := strings.Cut(text, "."); found && len(whole) > 2 {
		return whole + unit[1:]
	}
	return text
}

func rateText(n float64) string { return bytesText(n) + "/s" }

func ratioText(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100**r)
}

// countText is a number of things a second in at most five characters.
func countText(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 0.1:
		return "<0.1"
	case n < 10:
		return fmt.Sprintf("%.1f", n)
	case n < 99999.5:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.0fk", n/1000)
}

// secondsText is an estimate of a time, as exact as one is. The histograms tell nothing
// apart below a millisecond and above a minute.
func secondsText(of *float64) string {
	switch {
	case of == nil:
		return "-"
	case *of < 0.001:
		return "<1ms"
	case *of < 0.00995:
		return fmt.Sprintf("%.1fms", *of*1000)
	case *of < 0.9995:
		return fmt.Sprintf("%.0fms", *of*1000)
	case *of < 9.95:
		return fmt.Sprintf("%.1fs", *of)
	case *of < 60:
		return fmt.Sprintf("%.0fs", *of)
	}
	return ">60s"
}

// upText is how long a mount is there, in its two largest units.
func upText(seconds float64) string {
	d := time.Duration(max(seconds, 0)) * time.Second
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}
