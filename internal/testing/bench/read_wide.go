package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// wideColumns are of the Parquet file, of eight bytes a row each.
const wideColumns = 40

// python is the interpreter with DuckDB.
const python = ".venv/bin/python"

// makeWide writes the Parquet file of random numbers.
const makeWide = `
import duckdb, sys
rows, columns, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
c = duckdb.connect()
c.execute("SELECT setseed(0.5)")
c.execute("COPY (SELECT " + ", ".join(f"random() AS c{i}" for i in range(columns)) + f" FROM range({rows})) TO '{path}' (FORMAT parquet)")
`

// sumWide prints the seconds of a query and its answer.
const sumWide = `
import duckdb, sys, time
c = duckdb.connect()
began = time.monotonic()
total, rows = c.execute(f"SELECT sum(c17), count(*) FROM '{sys.argv[1]}'").fetchone()
print('{"work": %f, "values": [%f, %d]}' % (time.monotonic() - began, total, rows))
`

// putWide stores the Parquet file, which is made once and kept.
func (r *readRig) putWide(ctx context.Context) error {
	path := filepath.Join(r.o.keep, "wide-"+strconv.FormatInt(r.far.large>>20, 10)+".parquet")
	_, err := os.Stat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		rows := r.far.large / 8 / wideColumns
		if err = os.MkdirAll(r.o.keep, 0o755); err != nil {
			return err
		}
		if _, err = r.timed(ctx, python, "-c", makeWide, strconv.FormatInt(rows, 10), strconv.Itoa(wideColumns), path+".new"); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return err
	}
	t, err := sum(ctx, path)
	if err != nil {
		return err
	}
	r.wide = t.Values
	return r.putFile(ctx, wideData, path)
}

// sum adds up a column of the Parquet file.
func sum(ctx context.Context, path string) (timing, error) {
	return program(ctx, python, "-c", sumWide, path)
}

// sumChecked is sum, whose answer must be the original's, but for the order in
// which numbers were added.
func (r *readRig) sumChecked(ctx context.Context, path string) (timing, error) {
	t, err := sum(ctx, path)
	if err != nil {
		return t, err
	}
	if d := t.Values[0]/r.wide[0] - 1; d > 1e-9 || d < -1e-9 || t.Values[1] != r.wide[1] {
		return t, fmt.Errorf("%w: the sum of %v is %v, want %v", errDiffers, path, t.Values, r.wide)
	}
	t.Values = nil
	return t, nil
}
