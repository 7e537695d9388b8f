package metrics

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteText writes all metrics in the Prometheus text exposition format 0.0.4.
// Values are read one by one: two of them need not be of the same instant.
func (r *Registry) WriteText(w io.Writer) error {
	r.mu.Lock()
	families := r.mu.families[:len(r.mu.families):len(r.mu.families)]
	r.mu.Unlock()

	out := writer{Writer: bufio.NewWriter(w)}
	for _, f := range families {
		out.line("# HELP ", f.name, " ", escapeHelp(f.help))
		out.line("# TYPE ", f.name, " ", f.kind)
		for i, s := range f.series {
			s.write(&out, f.name, f.labelText(i))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// labelText renders the label values of the i-th series as a="x",b="y".
func (f *family) labelText(i int) string {
	parts := make([]string, len(f.labels))
	for l := len(f.labels) - 1; l >= 0; l-- {
		values := f.labels[l].Values
		parts[l] = f.labels[l].Name + `="` + escapeValue(values[i%len(values)]) + `"`
		i /= len(values)
	}
	return strings.Join(parts, ",")
}

func escapeHelp(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(s)
}

func escapeValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(s)
}

// writer keeps the first error, as bufio does, so that lines need no check.
type writer struct{ *bufio.Writer }

func (w *writer) line(parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p) // bufio keeps the error for Flush
	}
	_ = w.WriteByte('\n')
}

func (w *writer) sample(name, labels, value string) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	w.line(name, labels, " ", value)
}

func (c *Counter) write(w *writer, name, labels string) {
	w.sample(name, labels, strconv.FormatUint(c.Value(), 10))
}

func (g *Gauge) write(w *writer, name, labels string) {
	w.sample(name, labels, strconv.FormatInt(g.Value(), 10))
}

func (f *Func) write(w *writer, name, labels string) {
	w.sample(name, labels, strconv.FormatInt(f.Value(), 10))
}

func (h *Histogram) write(w *writer, name, labels string) {
	prefix := labels
	if prefix != "" {
		prefix += ","
	}
	var n uint64
	for i := range h.buckets {
		n += h.buckets[i].Load()
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = formatFloat(seconds(h.bounds[i]))
		}
		w.sample(name+"_bucket", prefix+`le="`+bound+`"`, strconv.FormatUint(n, 10))
	}
	w.sample(name+"_sum", labels, formatFloat(seconds(h.Sum())))
	w.sample(name+"_count", labels, strconv.FormatUint(n, 10))
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
