package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// readOptions are those of the read benchmark.
type readOptions struct {
	options
	peers   string // names' beginnings, by commas; "": all
	quick   bool   // without the cases that take long
	docs    string // directory of the report; "": none
	keep    string // directory of what is made once
	results string // file of the results of several runs; "": none
}

// readRig is a store that is far away, and who reads from it.
type readRig struct {
	farStore
	o    readOptions
	made map[string]bool // data that is in the store
	wide []float64       // the answer to the query of the Parquet file
}

// runRead measures reading, and leaves nothing behind, also when ctx ends.
func runRead(ctx context.Context, o readOptions) (err error) {
	r := &readRig{farStore: farStore{far: o.options}, o: o, made: map[string]bool{}}
	defer func() { err = errors.Join(err, r.close()) }()
	if err = r.directory(); err != nil {
		return err
	}
	if err = r.serve(ctx); err != nil {
		return err
	}
	err = r.catalog(ctx, warehouse.Table{Database: "db", Name: "t", Format: "csv", Files: map[string]string{"seed": "x\n"}})
	if err != nil {
		return err
	}
	began := time.Now()
	who := r.readers()
	var rows []readRow
	for _, c := range r.readCases() {
		if err = r.need(ctx, c.data); err != nil {
			if ctx.Err() != nil || !slices.Contains(c.data, wideData) {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			say("%s is left out: %v", c.name, err)
			continue
		}
		more, problem := r.runCase(ctx, c, who)
		if problem != nil {
			return problem
		}
		rows = append(rows, more...)
	}
	say("took %v", time.Since(began).Round(time.Second))
	if err = r.report(rows, who); err != nil {
		return err
	}
	return failures(rows)
}

// failures are those of the mount itself and of the plain program.
func failures(rows []readRow) error {
	var problems []error
	for _, w := range rows {
		for _, name := range []string{ours, plain} {
			if s, there := w.By[name]; there && s.Problem != "" {
				problems = append(problems, fmt.Errorf("%s, %s: %s", w.Case, name, s.Problem))
			}
		}
	}
	return errors.Join(problems...)
}

// wanted tells whether a contender is asked for.
func (o readOptions) wanted(name string) bool {
	return o.peers == "" || slices.ContainsFunc(strings.Split(o.peers, ","), func(p string) bool { return strings.HasPrefix(name, p) })
}

// say tells how far the run is.
func say(format string, args ...any) { _, _ = fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
