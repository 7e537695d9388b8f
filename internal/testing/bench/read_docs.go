package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plotDir is the module that draws: its libraries are no concern of the product's.
const plotDir = "internal/testing/bench/plot"

// write makes benchmarks.md and benchmarks.svg in a directory.
func (s results) write(dir string) error {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nMade by `make bench`; not to be edited.\n\n")
	s.setting(&b)
	table(&b, summaryHead(), func(row func([]string)) {
		for _, w := range s.Rows {
			row(w.summary())
		}
	})
	b.WriteString("\n![Ratio to the best peer and resident memory, by case](benchmarks.svg)\n\n## Everybody\n\n")
	table(&b, allHead(), func(row func([]string)) {
		for _, w := range s.Rows {
			for _, name := range w.names() {
				row(w.line(name))
			}
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte(b.String()), 0o644); err != nil { //nolint:gosec // a document
		return err
	}
	return s.plot(filepath.Join(dir, "benchmarks.svg"))
}

// setting tells where the figures are from and what they are.
func (s results) setting(b *strings.Builder) {
	missed, met := 0, 0
	for _, w := range s.Rows {
		texts, n := w.verdicts()
		missed, met = missed+n, met+len(texts)-n
	}
	fmt.Fprintf(b, "- Machine: %d × %s, %d GiB of memory, Linux %s; the store, the proxy and the readers share it\n", s.Machine.Count, s.Machine.Processor, s.Machine.Memory, s.Machine.Kernel)
	fmt.Fprintf(b, "- Program: %s, %s%s\n", s.Machine.Program, s.Machine.Go, map[bool]string{true: "", false: ", flags `" + s.Flags + "`"}[s.Flags == ""])
	fmt.Fprintf(b, "- Store: %s, its data in memory, behind a proxy: %s\n", s.Machine.Store, s.Far)
	for _, name := range slices.Sorted(maps.Keys(s.Peers)) {
		fmt.Fprintf(b, "- %s: %s\n", name, s.Peers[name])
	}
	fmt.Fprintf(b, `- Medians of %d, contenders in turns, each run in a fresh mount with empty caches. Who takes over %v is measured once.
- plain is a Go program with the AWS SDK that does the same work through the same proxy, with %d ranged GETs of 8 MiB at once (plain-8: %d), and writes with %d parts at once
- A ratio over 1 is better than the other. Peak RSS is the daemon's VmHWM in the run; CPU is the daemon's; requests and bytes are the proxy's count. Of the best peer in parentheses.
- s3fs keeps what it reads in a temporary file, here in memory, which its RSS leaves out. Its and rclone's settings are those of read_peers.go; rclone-streams is rclone with 16 streams of 4 MiB, in the cases of throughput.
- The listings of 100,000 names are answered by the proxy from memory once they were asked for: the store reads the whole directory for each page.
- What is read is compared with what was stored, and what is written with its source, in the first round.
- Goals met: %d of %d

`, s.Rounds, slowRun, manyConns, fewConns, limitFlight, met, met+missed)
}

// table writes one in Markdown.
func table(b *strings.Builder, head []string, rows func(row func([]string))) {
	row := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, c := range cells {
			escaped[i] = strings.ReplaceAll(strings.ReplaceAll(c, "|", "\\|"), " MISSED", " **missed**")
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(escaped, " | "))
	}
	row(head)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	rows(row)
}

// bars are what is drawn for a case.
type bars struct {
	Case     string  `json:"case"`
	Peer     string  `json:"peer"`
	Ratio    float64 `json:"ratio"`     // to the best peer; 0: none
	Plain    float64 `json:"plain"`     // to the plain program
	RSS      float64 `json:"rss"`       // MiB
	PeersRSS float64 `json:"peers_rss"` // the best peer's
}

// plot draws the ratios and the memory.
func (s results) plot(path string) error {
	var all []bars
	for _, w := range s.Rows {
		if o, there := w.By[ours]; there && !o.failed() {
			best := w.best()
			all = append(all, bars{w.Case, best, w.ratio(best), w.ratio(plain), o.Peak, w.By[best].Peak})
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var svg bytes.Buffer
	cmd := exec.Command("go", "run", ".") //nolint:noctx // ends by itself
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = plotDir, bytes.NewReader(raw), &svg, os.Stderr
	if err = cmd.Run(); err != nil {
		return fmt.Errorf("draw the plot: %w", err)
	}
	return os.WriteFile(path, svg.Bytes(), 0o644) //nolint:gosec // a document
}
