package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/render"
)

const (
	// tableRows is how many rows a table has unless --limit says otherwise.
	tableRows = 100
	// tableHead is how many lines a table has above its rows: names and a rule.
	tableHead = 2
	// rowsPatience bounds how long no byte of the file comes and no text is made: more
	// than a mount takes to give up a read of its own.
	rowsPatience = 10 * time.Minute
	// specPatience bounds how long a mount may take to say what is known of a file.
	specPatience = 2 * time.Minute
)

const rowsLong = `Shows the rows of a Parquet or Avro file as text.

In a mount they have the columns of the file's table, in its order and by name, then
its partition columns with the values of the path: what a query engine would read. A
file of no mount, a hidden one (_ or . first) and one in .lakefs/ have the columns that
they tell of themselves.

On a terminal they are a table of the first 100 rows, cut to what people read; else
JSON lines, all rows, each value exact. csv is RFC 4180 with a line of names, lines that
end in LF, and NULL as nothing (an empty string is ""). A column whose type has no text
in a format is named: leave it out by --columns.

Only the columns that are asked for are read. --columns is a line of CSV: a name that
has a comma or a quote in it is put in quotes, and a quote in it is written twice
(--columns 'id,"a,b","q""x"'). What was shown before an error stays; the
exit status is 1 then.`

const rowsExample = `  lakefs-mount rows sales/orders/dt=2026-01-01/region=eu/part-0000.parquet
  lakefs-mount rows --limit 0 FILE                      the whole table
  lakefs-mount rows --columns customer,amount FILE | jq 'select(.amount > 100)'
  lakefs-mount rows --format csv --columns customer FILE | sort | uniq -c`

// rowsFlags are the flags of rows.
type rowsFlags struct {
	columns []string
	limit   int64
	format  string
}

func rowsFormats() []string {
	return []string{render.OutputJSONL, render.OutputCSV, render.OutputTable}
}

func (p *program) rowsCommand() *cobra.Command {
	var flags rowsFlags
	cmd := &cobra.Command{
		Use:     "rows [flags] FILE",
		Short:   "Show the rows of a Parquet or Avro file as a table, JSON lines or CSV",
		Long:    rowsLong,
		Example: rowsExample,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			if args[0] == "-" {
				return usagef("FILE is -: rows are read from several places of a file, which standard input does not let: name a file")
			}
			more := !cmd.Flags().Changed("limit")
			if flags.format == "" {
				flags.format = p.rowsFormat()
			}
			if more = more && flags.format == render.OutputTable; more {
				flags.limit = tableRows
			}
			return p.rows(cmd.Context(), args[0], flags, more)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	cmd.Flags().Var((*columnNames)(&flags.columns), "columns", "the columns to show, in this order: `NAMES`, parted by commas, quoted as in CSV (default all)")
	cmd.Flags().Var((*rowCount)(&flags.limit), "limit", fmt.Sprintf("how many rows: `N`; 0: all (default all, of a table %d)", tableRows))
	cmd.Flags().StringVar(&flags.format, "format", "", "`FORMAT`: jsonl, csv or table (default table on a terminal, else jsonl)")
	err := errors.Join(
		cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(rowsFormats(), cobra.ShellCompDirectiveNoFileComp)),
		cmd.RegisterFlagCompletionFunc("columns", completeColumns),
	)
	if err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}

// columnNames are names as a flag gives them: a line of CSV, as often as it is given.
type columnNames []string

func (c *columnNames) String() string { return strings.Join(*c, ",") }

// Type is for messages.
func (c *columnNames) Type() string { return "names" }

// Set adds names.
func (c *columnNames) Set(text string) error {
	if text == "" {
		return nil
	}
	r := csv.NewReader(strings.NewReader(text))
	names, err := r.Read()
	if err == nil {
		_, err = r.Read()
	}
	if !errors.Is(err, io.EOF) {
		return errors.New(`they are names parted by commas; one with a comma or a quote in it is put in quotes, and a quote in it is written twice: --columns 'id,"a,b","q""x"'`)
	}
	*c = append(*c, names...)
	return nil
}

// rowCount is a number of rows as a flag gives it.
type rowCount int64

func (n *rowCount) String() string { return strconv.FormatInt(int64(*n), 10) }

// Type is for messages.
func (n *rowCount) Type() string { return "rows" }

// Set takes digits alone.
func (n *rowCount) Set(text string) error {
	rows, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("it is a number of rows in digits, as 1000, or 0 for all")
	}
	*n = rowCount(rows)
	return nil
}

// completeColumns completes the last of some names with those of the file's table, once
// the file is named.
func completeColumns(cmd *cobra.Command, args []string, typed string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) == 0 {
		return nil, none
	}
	path, err := absolute("FILE", args[0])
	if err != nil {
		return nil, none
	}
	spec, _, err := specOf(cmd.Context(), resolved(path))
	if err != nil {
		return nil, none
	}
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var names []string
	for _, c := range spec.Columns {
		names = append(names, c.Name)
	}
	for _, k := range spec.Keys {
		names = append(names, k.Name)
	}
	named := strings.Split(before, ",")
	for _, name := range names {
		if !slices.Contains(named, name) { // twice would be refused
			all = append(all, before+name)
		}
	}
	return all, none
}

// check refuses what cannot be meant.
func (f *rowsFlags) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("format") && !slices.Contains(rowsFormats(), f.format) {
		return usagef("--format %q: it is %s%s", f.format, strings.Join(rowsFormats(), ", "), settings.Suggest(f.format, rowsFormats()))
	}
	if f.limit < 0 {
		return usagef("--limit %d: it is a number of rows, or 0 for all", f.limit)
	}
	if cmd.Flags().Changed("columns") && len(f.columns) == 0 {
		return usagef("--columns names no column")
	}
	for i, name := range f.columns {
		switch {
		case name == "":
			return usagef("--columns %q: one has no name", strings.Join(f.columns, ","))
		case slices.Contains(f.columns[:i], name):
			return usagef("--columns names %q twice", name)
		}
	}
	return nil
}

// rowsFormat is a table where somebody reads along.
func (p *program) rowsFormat() string {
	if f, ok := p.stdoutFile(); ok && term.IsTerminal(int(f.Fd())) {
		return render.OutputTable
	}
	return render.OutputJSONL
}

// rows shows the rows of a file; with more it says whether there are others behind those
// that flags.limit lets.
func (p *program) rows(ctx context.Context, arg string, flags rowsFlags, more bool) error {
	path, err := absolute("FILE", arg)
	if err != nil {
		return err
	}
	path = resolved(path)
	f, err := openRows(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read alone
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%q: %w", path, bare(err))
	}
	spec, mounted, err := specOf(ctx, path)
	if err != nil {
		return err
	}
	if mounted && info.Size() == 0 && inControl(path) {
		return fmt.Errorf("%q is made by the mount, and is text already: cat, head and less read it", path)
	}
	if mounted {
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) // advice: what is read says the reader, not the kernel
	}
	spec.Kind, spec.Output, spec.Project, spec.Limit = render.KindRows, flags.format, flags.columns, flags.limit
	out := &cutLines{w: p.stdout}
	if more {
		spec.Limit++
		out.lines = tableHead + flags.limit
	}
	children := render.NewChildren(render.Options{Max: 1, Deadline: rowsPatience})
	defer children.Close() //nolint:errcheck // all was read, or why not is told
	child, err := children.Start(ctx, spec, render.Whole(f), info.Size())
	if err != nil {
		return err
	}
	defer child.Close() //nolint:errcheck // as above
	if _, err = io.Copy(out, child); err != nil {
		if out.failed != nil {
			return out.failed
		}
		return errors.New(printable(err.Error()))
	}
	if out.cut {
		p.errorf("lakefs-mount: these are the first %d rows; --limit N shows more of them, --limit 0 all\n", flags.limit)
	}
	return nil
}

// openRows opens what can be a file of rows.
func openRows(ctx context.Context, path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return nil, fmt.Errorf("%q: there is no such file; what there is shows: ls %s", path, shellQuote(filepath.Dir(path)))
	case err != nil:
		if m, in := mountOf(path); in == nil {
			if dead := askMount(ctx, m.path); dead != nil {
				return nil, fmt.Errorf("the mount at %q does not answer (%w): mount it again", m.path, dead)
			}
		}
		return nil, fmt.Errorf("%q: %w", path, bare(err))
	case info.IsDir():
		return nil, fmt.Errorf("%q is a directory: name a file in it: ls %s", path, shellQuote(path))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is no file that can be read from several places: copy it into one", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, bare(err))
	}
	return f, nil
}

// specOf is what is known of a file's rows: in a mount what that knows, else nothing but
// its name. mounted tells whether the file is in a mount of ours.
func specOf(ctx context.Context, path string) (spec render.Spec, mounted bool, err error) {
	own := render.Spec{Name: path}
	m, err := mountOf(path)
	if err != nil {
		return own, false, nil //nolint:nilerr // a file of no mount
	}
	dir, base := filepath.Split(path)
	below, err := filepath.Rel(m.path, path)
	if err != nil || inControl(below) {
		return own, true, nil //nolint:nilerr // it tells itself
	}
	if isEntry(m.path, path) {
		return spec, true, fmt.Errorf("%q is a catalog entry, which is text: cat, less and jq read it", path)
	}
	raw, err := bounded(ctx, specPatience, func() ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, ".lakefs", "rows", base+".spec"))
	})
	switch {
	case errors.Is(err, iofs.ErrNotExist) && hiddenBelow(below):
		return own, true, nil // no data of the table: Delta's checkpoints, _metadata
	case errors.Is(err, iofs.ErrNotExist):
		return spec, true, withoutRows(ctx, path)
	}
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	if err != nil {
		return spec, true, fmt.Errorf("ask the mount for the rows of %q: %w; the reason is in %s, and in the mount's log", path, bare(err), shellQuote(filepath.Join(dir, ".lakefs/status.json")))
	}
	spec.Name = path
	return spec, true, nil
}

// inControl tells paths that lead through a control directory.
func inControl(path string) bool {
	return slices.Contains(strings.Split(path, string(filepath.Separator)), ".lakefs")
}

// hiddenBelow tells paths that lead through a hidden name below their table. One with a
// "=" may be a partition's.
func hiddenBelow(path string) bool {
	names := strings.Split(path, string(filepath.Separator))
	return slices.ContainsFunc(names[min(len(names), 2):], func(name string) bool {
		return (name[0] == '_' || name[0] == '.') && !strings.Contains(name, "=")
	})
}

// withoutRows says why a mount shows no rows of a file.
func withoutRows(ctx context.Context, path string) error {
	status, err := directoryStatusOf(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	switch status.Format {
	case "csv", "text", "json":
		return fmt.Errorf("%q is of the format %s, which is text: cat, head and less read it", path, status.Format)
	case "parquet", "avro", "":
		return fmt.Errorf("the mount has no rows of %q: the file is gone, or the mount is of another version (lakefs-mount status tells): unmount it, and mount it with this one", path)
	}
	return fmt.Errorf("%q is of the format %s: rows are shown of Parquet and Avro files", path, status.Format)
}

// cutLines passes so many lines on, and takes the rest.
type cutLines struct {
	w     io.Writer
	lines int64 // 0: all
	seen  int64
	cut   bool // there was a rest

	failed error // of the write that did not take its text
}

// Write takes all of text.
func (c *cutLines) Write(text []byte) (int, error) {
	pass := text
	if c.lines > 0 {
		pass = nil
		for rest := text; len(rest) > 0; {
			if c.seen == c.lines {
				c.cut = true
				break
			}
			n := bytes.IndexByte(rest, '\n') + 1
			if n == 0 {
				n = len(rest)
			} else {
				c.seen++
			}
			rest = rest[n:]
			pass = text[:len(text)-len(rest)]
		}
	}
	if len(pass) > 0 {
		if _, err := c.w.Write(pass); err != nil {
			c.failed = fmt.Errorf("write rows: %w", bare(err))
			return 0, c.failed
		}
	}
	return len(text), nil
}
