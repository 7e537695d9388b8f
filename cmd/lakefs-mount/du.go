package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/table"
)

const duLong = `Shows how many files, bytes and rows the partitions of a table have.

TABLE is the table's directory in a mount, or a directory in it, of which it shows
what lies below. Files and sizes come from listings. Rows come from the footers of
Parquet and ORC files, each by one read of the file's end, and by the format that the
file's own partition has. Files of other formats do not tell their rows: ROWS is "-"
where none does, ends in "+" where some do, and the last line counts the others.
Hidden names (_ or . first) are no data and left out.

A file or directory that cannot be read is named, the others are counted, and the exit
status is 1. Ctrl-C ends it, and shows what was counted until then. Where not all was
listed the numbers end in "+", and are "-" where nothing was.`

const duExample = `  lakefs-mount du sales/orders
  lakefs-mount du --depth 1 sales/orders            a line a value of the first key
  lakefs-mount du sales/orders/dt=2026-01-01        one day
  lakefs-mount du --no-rows sales/orders            by listings alone
  lakefs-mount du --json sales/orders | jq '.partitions[] | select(.bytes > 1e9)'`

// counts are of files. Bytes are those of the listings.
type counts struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Rows are those of the files that tell, all but Uncounted; nil: no file does.
	Rows      *int64 `json:"rows"`
	Uncounted int64  `json:"uncounted"`
	// Partial: not all of what lies there was listed, so that all of these are parts.
	Partial bool `json:"partial,omitempty"`

	unlisted int64 // directories that are not listed to their end
}

// partitionCounts are those of the files at and below one directory.
type partitionCounts struct {
	Partition string `json:"partition"` // below the table's directory; ".": that
	counts
}

// surveyed is what came of a du.
type surveyed struct {
	Path        string            `json:"path"` // below the mount point
	MountPoint  string            `json:"mountpoint"`
	Partitions  []partitionCounts `json:"partitions"` // by name
	Total       counts            `json:"total"`
	Failed      []warmFailure     `json:"failed"`
	Interrupted bool              `json:"interrupted"`
	Seconds     float64           `json:"seconds"`
}

// duFlags are the flags of du.
type duFlags struct {
	asJSON, noRows bool
	depth          int // partition levels that are told apart; less than 0: all
}

func (p *program) duCommand() *cobra.Command {
	var flags duFlags
	cmd := &cobra.Command{
		Use:               "du [flags] TABLE",
		Short:             "Show the files, bytes and rows of a table by partition",
		Long:              duLong,
		Example:           duExample,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("depth"):
				flags.depth = -1
			case flags.depth < 0:
				return usagef("--depth %d: it is 0 for the total alone, or how many partition keys are told apart", flags.depth)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, unix.SIGTERM)
			defer stop()
			at, err := placeOf(ctx, args[0])
			if err == nil {
				err = at.inTable(ctx)
			}
			if err != nil {
				return err
			}
			return p.du(ctx, at, flags)
		},
	}
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "as one JSON document; rows are null where no file tells them")
	cmd.Flags().BoolVar(&flags.noRows, "no-rows", false, "read no footers: files and bytes alone")
	cmd.Flags().IntVar(&flags.depth, "depth", 0, "how many partition keys are told apart: `N`; 0: the total alone (default all)")
	return cmd
}

// inTable makes sure that it is the directory of a table, or one in it.
func (at place) inTable(ctx context.Context) error {
	if strings.Count(at.below, "/") == 0 {
		return at.table(ctx, "du")
	}
	if slices.Contains(strings.Split(at.below, "/"), ".lakefs") {
		return fmt.Errorf("%q tells of data, and holds none: name the directory of a table", at.path)
	}
	return at.directory(ctx, "table or partition")
}

// du counts what lies at and below a place, and prints it.
func (p *program) du(ctx context.Context, at place, flags duFlags) error {
	names := strings.SplitN(at.below, "/", 3)
	tableDir := filepath.Join(at.mount.path, names[0], names[1])
	status, err := directoryStatusOf(ctx, tableDir)
	if err != nil {
		return err
	}
	if !status.Readable {
		return fmt.Errorf("%q cannot be read: %s", tableDir, printable(status.Reason))
	}
	s := newSurveyor(p, tableDir, status, flags)
	s.warn()
	began := time.Now()
	s.run(ctx, at.path)
	r := s.outcome()
	r.Path, r.MountPoint = at.below, at.mount.path
	r.Seconds, r.Interrupted = time.Since(began).Seconds(), ctx.Err() != nil
	if flags.asJSON {
		err = p.printJSON(r)
	} else {
		p.printCounts(r, flags)
	}
	switch {
	case err != nil:
		return err
	case r.Interrupted:
		return fmt.Errorf("%w: not all was counted", errInterrupted)
	case len(r.Failed) > 0:
		return errReported
	}
	return nil
}

// directoryStatusOf asks the mount what it makes of a directory of data.
func directoryStatusOf(ctx context.Context, dir string) (catalogview.Status, error) {
	raw, err := readControl(ctx, dir, "status.json")
	var status struct {
		View *catalogview.Status `json:"catalog"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &status)
	}
	if err == nil && status.View == nil {
		err = errors.New("it does not tell")
	}
	if err != nil {
		return catalogview.Status{}, fmt.Errorf("ask the mount what %q is (.lakefs/status.json in it): %w", dir, bare(err))
	}
	return *status.View, nil
}

// warn says where the files are not what readers of the table get.
func (s *surveyor) warn() {
	switch kind := table.Kind(s.status.Kind); kind {
	case table.Delta, table.Iceberg, table.Hudi:
		s.p.errorf("lakefs-mount: a table of %s: files that it no longer has, or not yet, are counted too\n", kind)
	}
}

// outcome is what was counted so far.
func (s *surveyor) outcome() surveyed {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := surveyed{Total: counts{unlisted: s.above}, Partitions: make([]partitionCounts, 0, len(s.parts)), Failed: append([]warmFailure{}, s.failed...)}
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		c := *s.parts[name]
		r.Total.add(c)
		r.Partitions = append(r.Partitions, partitionCounts{name, c.told()})
	}
	r.Total = r.Total.told()
	return r
}

// add adds those of other files.
func (c *counts) add(o counts) {
	c.unlisted += o.unlisted
	c.Files, c.Bytes, c.Uncounted = c.Files+o.Files, c.Bytes+o.Bytes, c.Uncounted+o.Uncounted
	if o.Rows != nil {
		c.addRows(*o.Rows)
	}
}

func (c *counts) addRows(n int64) {
	sum := n
	if c.Rows != nil {
		sum += *c.Rows
	}
	c.Rows = &sum
}

// told are the counts in the end: where there are no files there are no rows.
func (c counts) told() counts {
	c.Partial = c.unlisted > 0
	if c.Files == 0 && !c.Partial {
		c.Rows = new(int64)
	}
	return c
}

// printCounts prints a line for each partition, and the total.
func (p *program) printCounts(r surveyed, flags duFlags) {
	lines := [][]string{{"PARTITION", "FILES", "SIZE", "ROWS"}}
	for _, part := range r.Partitions {
		if flags.depth != 0 {
			lines = append(lines, part.cells(quoted(part.Partition)))
		}
	}
	lines = append(lines, r.Total.cells("total"))
	if flags.noRows {
		for i := range lines {
			lines[i] = lines[i][:3]
		}
	} else if r.Total.Uncounted > 0 {
		last := len(lines) - 1
		lines[last] = append(lines[last], fmt.Sprintf("(rows of %s not counted)", countOf(int(r.Total.Uncounted), "file")))
	}
	p.printf("%s", aligned(lines))
}

// cells are those of a line. A "+" is behind what is a part, "-" is what is not known.
func (c counts) cells(name string) []string {
	if c.Partial && c.Files == 0 {
		return []string{name, "-", "-", "-"}
	}
	files, size, rows := strconv.FormatInt(c.Files, 10), sizeText(c.Bytes), "-"
	if c.Rows != nil {
		rows = strconv.FormatInt(*c.Rows, 10)
		if c.Uncounted > 0 || c.Partial {
			rows += "+"
		}
	}
	if c.Partial {
		files, size = files+"+", size+"+"
	}
	return []string{name, files, size, rows}
}

// aligned makes lines of cells: the first and the fifth to the left, numbers to the right.
func aligned(lines [][]string) string {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				b.WriteString(cell + pad)
			case i > 3:
				b.WriteString("  " + cell)
			default:
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
