package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/fs"
)

const commitLong = `Publishes the files of a transaction together. PATH is its directory:

    mkdir -p TABLE/.lakefs/txn/ID/dt=2026-11-30    # ID is a name of your choice
    cp *.parquet TABLE/.lakefs/txn/ID/dt=2026-11-30/
    lakefs-mount commit TABLE/.lakefs/txn/ID

All of them are checked before the first is published. If one cannot be, those that
were are taken back; with --overwrite what is published stays. The files that are not
published stay in the transaction.

--overwrite removes what its files replace, before it publishes: with no SCOPE the
partitions that the transaction has files in, or the whole table, as the table's
dynamic-partition-overwrite says; --overwrite=dt=2026-11-30/ all below that, and
--overwrite='*' all of the table. Readers meet the moment between.

Ctrl-C ends the wait and not the commit, which the mount finishes.`

// scopeOfTable is --overwrite without a scope.
const scopeOfTable = "default"

// scopeAll is the scope of --overwrite that is the whole table.
const scopeAll = "*"

func (p *program) commitCommand() *cobra.Command {
	var scope string
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "commit [flags] PATH",
		Short:             "Publish the files of a transaction together",
		Long:              commitLong,
		ValidArgsFunction: completeDirectory,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 && scope == scopeOfTable { // its scope stands apart from it
			return usagef("--overwrite takes its SCOPE behind =: --overwrite=%s", shellQuote(args[0]))
		}
		return arguments(1, 1)(cmd, args)
	}
	cmd.Flags().StringVar(&scope, "overwrite", "", "replace what is in `SCOPE`: a prefix such as dt=2026-11-30/, or * for the whole table")
	cmd.Flags().Lookup("overwrite").NoOptDefVal = scopeOfTable
	cmd.Flags().BoolVar(&asJSON, "json", false, "the outcome as JSON: the mount's job")
	_ = cmd.RegisterFlagCompletionFunc("overwrite", completeScope) // the flag is there
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("overwrite") && scope == "" { // a variable of a script that is empty
			return usagef("--overwrite: no SCOPE is named; %s alone is that of the table, and '*' all of it", "--overwrite")
		}
		if strings.Contains(scope, "\n") {
			return usagef("--overwrite=%q: no directory that is overwritten can have a line's end in its name", scope)
		}
		t, err := transactionOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		verb, rest := "commit", ""
		if scope != "" {
			verb, rest = "overwrite", scopeText(scope)
		} else if err = t.filled(cmd.Context()); err != nil {
			return err
		}
		job, err := p.runJob(cmd.Context(), t.ask(verb, rest, t.afterCommit))
		return p.tellJob(job, err, asJSON, func() error { return p.printCommitted(job) })
	}
	return cmd
}

// afterCommit is what to do when a commit has failed.
func (t transaction) afterCommit(error) string {
	if _, err := os.Stat(t.path); errors.Is(err, iofs.ErrNotExist) { // all was published, and the catalog refused
		return "; the files are published: once the catalog takes their partitions, lakefs-mount repair " +
			shellQuote(filepath.Dir(filepath.Dir(filepath.Dir(t.path)))) + " registers them"
	}
	return "; what is not published is staged in it: put right what this says and commit again, or drop it: lakefs-mount abort " + shellQuote(t.path)
}

// printCommitted prints a line for all.
func (p *program) printCommitted(job fs.JobStatus) error {
	var done struct {
		Files   int   `json:"files"`
		Bytes   int64 `json:"bytes"`
		Cleared int   `json:"cleared"`
		Local   int   `json:"local"`
	}
	if err := json.Unmarshal(job.Result, &done); err != nil {
		return fmt.Errorf("commit of %q: the mount's answer: %w", job.Path, err)
	}
	p.printf("published %s (%s) of %s", countOf(done.Files, "file"), sizeText(done.Bytes), quoted(job.Path))
	if done.Cleared > 0 {
		p.printf(", and removed %s before", countOf(done.Cleared, "file"))
	}
	if done.Local > 0 {
		p.printf("; %s of local names stay in the mount", countOf(done.Local, "file"))
	}
	p.printf("\n")
	return nil
}

// scopeText is a scope as the control file takes it.
func scopeText(scope string) string {
	switch scope {
	case scopeOfTable:
		return ""
	case scopeAll:
		return scope
	}
	return strings.TrimSuffix(scope, "/") + "/"
}

const abortLong = `Drops a transaction: its files, which nobody has seen, and its directory. PATH is that
directory, TABLE/.lakefs/txn/ID. What is published stays. rm -r PATH does the same.`

func (p *program) abortCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "abort [flags] PATH",
		Short:             "Drop a transaction and its files",
		Long:              abortLong,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := transactionOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			job, err := p.runJob(cmd.Context(), t.ask("abort", "", func(error) string {
				return "; what is left of it shows: lakefs-mount status " + shellQuote(t.mount.path)
			}))
			return p.tellJob(job, err, asJSON, func() error {
				p.printf("dropped %s\n", quoted(t.below))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the outcome as JSON: the mount's job")
	return cmd
}

// transaction is the directory of one.
type transaction struct{ place }

// The directories on the way to a transaction, below its table's.
const (
	controlDirectory      = ".lakefs"
	transactionsDirectory = "txn"
)

// transactionOf finds a transaction that is open.
func transactionOf(ctx context.Context, arg string) (transaction, error) {
	at, err := placeOf(ctx, arg)
	if err != nil {
		return transaction{}, err
	}
	if err := at.writable(); err != nil {
		return transaction{}, err
	}
	names := strings.Split(at.below, "/")
	form := filepath.Join(at.mount.path, "DATABASE/TABLE", controlDirectory, transactionsDirectory, "ID")
	switch {
	case len(names) > 5 && names[2] == controlDirectory && names[3] == transactionsDirectory:
		return transaction{}, fmt.Errorf("%q lies in a transaction, which is one whole: %s", at.path, shellQuote(filepath.Join(at.mount.path, filepath.Join(names[:5]...))))
	case len(names) != 5 || names[2] != controlDirectory || names[3] != transactionsDirectory:
		return transaction{}, fmt.Errorf("%q is no transaction, which is a directory %s%s", at.path, form, openTransactions(ctx, at))
	}
	if err := at.directory(ctx, "transaction"); err != nil {
		if _, missing := os.Stat(filepath.Dir(at.path)); errors.Is(missing, iofs.ErrNotExist) {
			if older := knowsJobs(ctx, at.mount.path, "transactions"); older != nil {
				return transaction{}, older
			}
		}
		return transaction{}, fmt.Errorf("%w (one that was committed or dropped is gone)%s", err, openTransactions(ctx, at))
	}
	return transaction{at}, nil
}

// openTransactions names those of the table that a path lies in, for a message.
func openTransactions(ctx context.Context, at place) string {
	names := strings.Split(at.below, "/")
	if len(names) < 2 {
		return ""
	}
	dir := filepath.Join(at.mount.path, names[0], names[1], controlDirectory, transactionsDirectory)
	open, err := bounded(ctx, answerTimeout, func() ([]os.DirEntry, error) { return os.ReadDir(dir) })
	if err != nil || len(open) == 0 {
		return ""
	}
	var paths []string
	for _, e := range open[:min(len(open), shownMax)] {
		paths = append(paths, shellQuote(filepath.Join(dir, e.Name())))
	}
	return "; open are: " + strings.Join(paths, ", ")
}

// ask is a line for the transaction's control file.
func (t transaction) ask(verb, rest string, next func(error) string) jobAsk {
	return jobAsk{
		mountpoint: t.mount.path, control: filepath.Join(t.path, "ctl"), verb: verb, rest: rest,
		what: fmt.Sprintf("%s of %q", verb, t.below), steps: "files", next: next,
	}
}

// filled refuses a transaction with no file in it.
func (t transaction) filled(ctx context.Context) error {
	found := errors.New("found")
	_, err := bounded(ctx, publishLimit, func() (struct{}, error) {
		return struct{}{}, filepath.WalkDir(t.path, func(path string, d iofs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && path != filepath.Join(t.path, "ctl") {
				return found
			}
			return err
		})
	})
	switch {
	case errors.Is(err, found):
		return nil
	case err != nil:
		return fmt.Errorf("look into the transaction: %w", err)
	}
	return fmt.Errorf("%q has no files, and a commit would publish nothing: put files into it (below dt=…/ and so on, as in the table), or drop it: lakefs-mount abort %s", t.path, shellQuote(t.path))
}

// completeScope offers the prefixes that a transaction has files in.
func completeScope(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	scopes := []cobra.Completion{scopeAll}
	if len(args) == 1 {
		entries, _ := os.ReadDir(args[0]) // none: the table alone
		for _, e := range entries {
			if e.IsDir() {
				scopes = append(scopes, e.Name()+"/")
			}
		}
	}
	slices.Sort(scopes)
	return scopes, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
