package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// demoMark is the file that says that a directory is a demo's.
const demoMark = ".lakefs-mount-demo"

const demoLong = `Makes a small warehouse in DIR/warehouse (default ./demo) and mounts it on
DIR/lake, in the background. What it keeps lies in DIR alone. Run again, it mounts
the same warehouse; what you changed in the lake stays.`

const demoText = `
The lake is mounted on %[1]s. Try:

  cd %[2]s
  ls -lR
  cat sales/orders.json | jq .table_type          a table's catalog entry
  head -3 web/clicks/dt=2026-01-01/clicks.csv     a CSV file
  ls sales/orders                                 partitions, one of them null
  head -2 sales/orders/dt=2026-01-01/region=eu/.lakefs/rows/part-0000.parquet.jsonl
  %-47[6]s files, bytes and rows of a table
  cp sales/orders/dt=2026-01-01/region=eu/part-0000.parquet /tmp/
  cp /tmp/part-0000.parquet sales/orders/dt=2026-01-01/region=eu/part-0001.parquet
  cat broken/cut/.lakefs/status.json              why a table cannot be read
  find . | wc -l; du -sh .

Files come from and go to     %[3]s
What the mount does           %[5]s
Unmount                       %[4]s
`

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [flags] [DIR]",
		Short: "Make a small warehouse in a local folder and mount it",
		Long:  demoLong,
		Args:  arguments(0, 1),

		ValidArgsFunction: completeDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "demo"
			if len(args) == 1 {
				dir = args[0]
			}
			dir, err := absolute("demo directory", dir)
			if err != nil {
				return err
			}
			return p.demo(cmd.Context(), dir)
		},
	}
}

func (p *program) demo(ctx context.Context, dir string) error {
	if err := makeDemo(dir); err != nil {
		return err
	}
	lake := filepath.Join(dir, "lake")
	e, found, err := mountedAt(lake)
	if err != nil {
		return err
	}
	if !found || !e.ours() || !answers(ctx, lake) {
		given := settings.Given{"daemon": {"true"}, "state-dir": {filepath.Join(dir, "state")}}
		r, err := p.newRequest(ctx, filepath.Join(dir, "warehouse"), lake, given)
		if err != nil {
			return err
		}
		if err := p.mount(ctx, r); err != nil {
			return err
		}
	}
	self := "lakefs-mount"
	if path, err := os.Executable(); err == nil {
		self = shellQuote(path)
	}
	p.printf(demoText, quoted(lake), shellQuote(lake), quoted(filepath.Join(dir, "warehouse")), self+" unmount "+shellQuote(lake), self+" status", self+" du sales/orders")
	return nil
}

// makeDemo makes the warehouse and the mount point in dir, which is new, empty
// or a demo's already. A warehouse that is there is left as it is.
func makeDemo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("demo directory %q: %w; name another: lakefs-mount demo DIR", dir, bare(err))
	}
	names, err := firstNames(dir)
	if err != nil {
		return fmt.Errorf("demo directory %q: %w", dir, bare(err))
	}
	if len(names) > 0 && !exists(filepath.Join(dir, demoMark)) {
		return fmt.Errorf("demo directory %q: not empty (it has %q), and not made by demo; name a new one: lakefs-mount demo DIR", dir, names[0])
	}
	lake := filepath.Join(dir, "lake")
	if _, mounted, mountErr := mountedAt(lake); mountErr != nil || mounted {
		return mountErr
	}
	if err = writeDemo(dir); err != nil {
		return fmt.Errorf("demo warehouse: %w", err)
	}
	if err = os.MkdirAll(lake, 0o755); err != nil {
		return fmt.Errorf("demo mount point: %w", err)
	}
	return nil
}

// writeDemo makes the mark and, if there is none, the warehouse: aside, then
// renamed, so that one that was interrupted is made anew.
func writeDemo(dir string) error {
	root := filepath.Join(dir, "warehouse")
	if exists(root) {
		return nil
	}
	const note = "Made by lakefs-mount demo. Unmount lake before you remove this.\n"
	if err := os.WriteFile(filepath.Join(dir, demoMark), []byte(note), 0o644); err != nil {
		return err
	}
	tables, err := demoTables()
	if err != nil {
		return err
	}
	fresh := root + ".new"
	if err = os.MkdirAll(fresh, 0o755); err != nil {
		return err
	}
	if err = warehouse.Write(fresh, tables...); err != nil {
		return err
	}
	return os.Rename(fresh, root)
}
