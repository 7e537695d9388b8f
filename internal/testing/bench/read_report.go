package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// results are what runs measured: this one's, and those that are kept in a file.
type results struct {
	Machine machine           `json:"machine"`
	Peers   map[string]string `json:"peers"` // versions
	Rounds  int               `json:"rounds"`
	Far     string            `json:"far"` // how far away the store is
	Flags   string            `json:"flags,omitempty"`
	Rows    []readRow         `json:"rows"`
}

// results are of this run, over the ones that are kept.
func (r *readRig) results(rows []readRow, who []reader) (results, error) {
	all := results{Machine: r.machine(), Peers: map[string]string{}, Rounds: r.far.rounds, Flags: r.far.flags}
	all.Far = fmt.Sprintf("%v to the first byte, %v a LIST, %d MiB/s a connection", r.far.firstByte, r.far.list, r.far.rate>>20)
	var kept results
	if r.o.results != "" {
		raw, err := os.ReadFile(r.o.results)
		if err == nil {
			err = json.Unmarshal(raw, &kept)
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return all, fmt.Errorf("earlier results: %w", err)
		}
	}
	for name, version := range kept.Peers {
		all.Peers[name] = version
	}
	for _, w := range who {
		if isPeer(w.name) {
			all.Peers[w.name] = w.version
		}
	}
	all.Rows = merged(kept.Rows, rows)
	if r.o.results == "" {
		return all, nil
	}
	raw, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(r.o.results, append(raw, '\n'), 0o600)
	}
	return all, err
}

// merged are the rows of earlier runs with the new ones in their place.
func merged(old, rows []readRow) []readRow {
	all := slices.Clone(old)
	for _, row := range rows {
		i := slices.IndexFunc(all, func(w readRow) bool { return w.Case == row.Case })
		if i < 0 {
			all = append(all, row)
			continue
		}
		all[i] = row
	}
	return all
}

func (r *readRig) report(rows []readRow, who []reader) error {
	all, err := r.results(rows, who)
	if err != nil {
		return err
	}
	if r.o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(all)
	} else {
		err = all.text(os.Stdout, rows)
	}
	if r.o.docs != "" {
		err = errors.Join(err, all.write(r.o.docs))
	}
	return err
}

// text prints the rows of this run: the mount beside the best, then everybody.
func (s results) text(to io.Writer, rows []readRow) error {
	_, _ = fmt.Fprintf(to, "%s\nstore: %s; medians of %d\n\n", s.Machine, s.Far, s.Rounds) // as the table: its Flush tells
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(summaryHead(), "\t")) // kept by w until Flush
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row.summary(), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(to)
	_, _ = fmt.Fprintln(w, strings.Join(allHead(), "\t"))
	for _, row := range rows {
		for _, name := range row.names() {
			_, _ = fmt.Fprintln(w, strings.Join(row.line(name), "\t"))
		}
	}
	return w.Flush()
}

func summaryHead() []string {
	return []string{"case", "value", "goal", "best peer", "ratio", "plain", "ratio", "peak RSS MiB (peer)", "fetched/asked", "requests", "CPU s/GiB (peer)"}
}

// summary is the mount's line.
func (w readRow) summary() []string {
	us, best := w.By[ours], w.best()
	texts, _ := w.verdicts()
	peer := "-"
	if best != "" {
		peer = number(w.By[best].Value) + " " + best
	}
	requests := "-"
	if n := us.total(); n > 0 {
		requests = fmt.Sprint(n)
	}
	return []string{
		w.Case, w.value(ours), orNone(strings.Join(texts, "; ")), peer, times(w.ratio(best)), w.value(plain), times(w.ratio(plain)),
		pair(us.Peak, w.By[best].Peak, 0), figure(w.excess(ours), 2), requests, pair(w.cpu(ours), w.cpu(best), 2),
	}
}

func allHead() []string {
	return []string{"case", "by", "value", "peak RSS MiB", "CPU s/GiB", "fetched/asked", "requests"}
}

// line is a contender's line.
func (w readRow) line(name string) []string {
	o := w.By[name]
	return []string{
		w.Case, name, w.value(name), figure(o.Peak, 0), figure(w.cpu(name), 2), figure(w.excess(name), 2), orNone(requests(o.Requests)),
	}
}

// value is a contender's, with its unit.
func (w readRow) value(name string) string {
	o, there := w.By[name]
	switch {
	case !there:
		return "-"
	case o.failed():
		return "failed: " + firstLine(o.Problem)
	case o.Early:
		return number(o.Value) + " " + w.Unit + " (before it was stored)"
	}
	return number(o.Value) + " " + w.Unit
}

// firstLine is the end of an error's first line, which tells the most.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	const most = 60
	if len(s) > most {
		s = "…" + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func times(x float64) string {
	if x == 0 {
		return "-"
	}
	return number(x) + " ×"
}

func figure(x float64, digits int) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, x)
}

func pair(us, peer float64, digits int) string {
	if peer == 0 {
		return figure(us, digits)
	}
	return figure(us, digits) + " (" + figure(peer, digits) + ")"
}

func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func requests(by map[string]int) string {
	parts := make([]string, 0, len(by))
	for op, n := range by {
		parts = append(parts, fmt.Sprintf("%s %d", op, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
