package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func (r *readRig) report(rows []readRow) error {
	if r.o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"machine": r.machine(), "rounds": r.far.rounds, "flags": r.far.flags, "rows": rows})
	}
	return r.table(os.Stdout, rows)
}

func (r *readRig) table(to io.Writer, rows []readRow) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "case\tby\tvalue\t\tpeak RSS MiB\tCPU s/GiB\tfetched/asked\trequests\t") // kept by w until Flush
	for _, row := range rows {
		for _, name := range row.names() {
			o := row.By[name]
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t%s\t\n", row.Case, name, o.text(), row.Unit, o.Peak,
				row.each(o.CPU, 1<<30), row.each(float64(o.Fetched), 1), requests(o.Requests))
		}
	}
	return w.Flush()
}

// names are the contenders, the mount first, then the plain program.
func (w readRow) names() []string {
	var names []string
	for name := range w.By {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return names
}

func rank(name string) string {
	switch name {
	case ours:
		return "0"
	case plain, plainFew:
		return "1" + name
	}
	return "2" + name
}

// each is a figure for each unit of bytes that the case asks for.
func (w readRow) each(figure, unit float64) string {
	if w.c.bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", figure/(float64(w.c.bytes)/unit))
}

func (o outcome) text() string {
	if math.IsNaN(o.Value) {
		return "failed"
	}
	return number(o.Value)
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
	var parts []string
	for op, n := range by {
		parts = append(parts, fmt.Sprintf("%s %d", op, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
