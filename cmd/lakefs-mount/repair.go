package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/fs"
)

const repairLong = `Registers the partitions of a table that lie in the store and are not in the
catalog: those whose registration failed, and those that others wrote without
registering. It adds only. An entry that is there stays as it is, wherever it
points to, and no data is touched.

TABLE is the table's directory in a mount. Prints a line for each partition that
was added, and for each directory that was not, with the reason. The exit status
is 0 if all of them are registered by then.`

func (p *program) repairCommand() *cobra.Command {
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:               "repair [flags] TABLE",
		Short:             "Register the partitions of a table that the catalog does not have",
		Long:              repairLong,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := placeOf(cmd.Context(), args[0])
			if err == nil {
				if err = at.writable(); err != nil && dryRun {
					err = fmt.Errorf("%w: a dry run is asked of the mount by a control file, which cannot be written there", err)
				}
			}
			if err == nil {
				err = at.table(cmd.Context(), "repair")
			}
			if err != nil {
				return err
			}
			verb := "repair"
			if dryRun {
				verb += " --dry-run"
			}
			job, err := p.runJob(cmd.Context(), jobAsk{
				mountpoint: at.mount.path, control: rootControl(at.mount.path), verb: verb, rest: strconv.Quote(at.below),
				what: fmt.Sprintf("repair of %q", at.below), steps: "directories", next: repairNext,
			})
			return p.tellJob(job, err, asJSON, func() error { return p.printRepaired(job) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be added")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the outcome as JSON: the mount's job, with .result.added, .skipped and .failed")
	return cmd
}

// repairNext is what to do when a repair fails, and not for what the mount or the table is.
func repairNext(err error) string {
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) { //nolint:forbidigo // the mount's answer
		return ""
	}
	return "; what is registered stays, and nothing else was changed: lakefs-mount check says what the catalog allows, and repair can be run again"
}

// tellJob prints what came of a job, as JSON or by text, and returns its error.
func (p *program) tellJob(job fs.JobStatus, failed error, asJSON bool, text func() error) error {
	var err error
	switch {
	case job.ID == "": // the mount was not asked
	case asJSON:
		err = p.printJSON(job)
	case job.Result != nil || failed == nil:
		err = text()
	}
	if failed != nil {
		return failed
	}
	return err
}

// printRepaired prints a line for each directory, and one for all.
func (p *program) printRepaired(job fs.JobStatus) error {
	var done catalogview.Repaired
	if err := json.Unmarshal(job.Result, &done); err != nil {
		return fmt.Errorf("repair of %q: the mount's answer: %w", job.Path, err)
	}
	failed := make(map[string]bool)
	for _, f := range done.Failed {
		failed[f.Path] = true
	}
	for _, path := range done.Added {
		switch {
		case done.DryRun:
			p.printf("missing %s\n", quoted(path))
		case !failed[path]:
			p.printf("added %s\n", quoted(path))
		}
	}
	for _, s := range done.Skipped {
		p.printf("skipped %s: %s\n", quoted(s.Path), printable(s.Reason))
	}
	for _, s := range done.Failed {
		p.printf("failed %s: %s\n", quoted(s.Path), printable(s.Reason))
	}
	p.printf("%s: %s, %d not in the catalog, %d added\n", quoted(job.Path), directoriesText(done.Looked), done.Missing, done.Registered)
	if rest := done.Missing - len(done.Added); rest > 0 {
		p.printf("(%d more are not listed)\n", rest)
	}
	return nil
}

func directoriesText(n int) string {
	if n == 1 {
		return "1 directory"
	}
	return fmt.Sprintf("%d directories", n)
}

// completeDirectory completes a first argument that is a directory.
func completeDirectory(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}
