package main

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/table"
)

const setFormatLong = `Changes the format that the catalog has of one partition, or of a table: that entry
alone. Of a table the partitions that are there keep theirs.

PATH is the partition's or the table's directory in a mount. FORMAT is one of
TEXTFILE, SEQUENCEFILE, ORC, PARQUET, AVRO, RCFILE and JSONFILE, or names classes:

    lakefs-mount set-format PATH INPUTFORMAT class OUTPUTFORMAT class SERDE class

No file is changed: say the format that the files have. Refused for tables of Spark's
data sources, for views, and for partitions of manifests, which have no entry.`

// formatKeywords are those of STORED AS.
func formatKeywords() []string {
	return []string{"TEXTFILE", "SEQUENCEFILE", "ORC", "PARQUET", "AVRO", "RCFILE", "JSONFILE"}
}

func (p *program) setFormatCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "set-format [flags] PATH FORMAT…",
		Short: "Change the format that the catalog has of a partition or a table",
		Long:  setFormatLong,
		Args:  arguments(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format := formatText(args[1:])
			if _, err := table.ParseFormatChange(format); err != nil {
				return usageError{err}
			}
			if strings.Contains(format, "\n") {
				return usagef("FORMAT %q: it is one line", format)
			}
			at, err := placeOf(cmd.Context(), args[0])
			if err == nil {
				err = at.writable()
			}
			if err == nil {
				err = at.entry()
			}
			if err == nil {
				err = at.directory(cmd.Context(), "partition or table")
			}
			if err != nil {
				return err
			}
			job, err := p.runJob(cmd.Context(), jobAsk{
				mountpoint: at.mount.path, control: rootControl(at.mount.path), verb: "set-format", rest: strconv.Quote(at.below) + " " + format,
				what: fmt.Sprintf("set-format of %q", at.below), steps: "steps", next: at.afterSetFormat,
			})
			return p.tellJob(job, err, asJSON, func() error {
				p.printf("%s is %s in the catalog\n", quoted(at.below), printable(format))
				return nil
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return nil, cobra.ShellCompDirectiveFilterDirs
			case 1:
				return append(formatKeywords(), "INPUTFORMAT"), cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"OUTPUTFORMAT", "SERDE"}, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the outcome as JSON: the mount's job")
	return cmd
}

// afterSetFormat is what to do when the format could not be set.
func (at place) afterSetFormat(err error) string {
	const unchanged = "; nothing was changed"
	names := strings.Split(at.below, "/")
	switch {
	case errors.Is(err, iofs.ErrNotExist) && len(names) > 2:
		return unchanged + ". If the catalog does not have the partition yet: lakefs-mount repair " + shellQuote(filepath.Join(at.mount.path, names[0], names[1]))
	case errors.Is(err, unix.EACCES): //nolint:forbidigo // the mount's answer
		return unchanged + ". A mount with --catalog-writes=none changes no entry, and only one with --catalog-writes=entries that of a table; what the catalog allows says lakefs-mount check"
	}
	return unchanged
}

// formatText is a FORMAT, in which the quotes that a shell took off a class are back.
func formatText(words []string) string {
	text := slices.Clone(words)
	for i := 1; i < len(text); i++ {
		switch strings.ToUpper(text[i-1]) {
		case "INPUTFORMAT", "OUTPUTFORMAT", "SERDE":
			if !strings.ContainsAny(text[i], `'" `) {
				text[i] = "'" + text[i] + "'"
			}
		}
	}
	return strings.Join(text, " ")
}

// entry refuses what is above the tables: only they and their partitions have formats.
func (at place) entry() error {
	if strings.Count(at.below, "/") == 0 {
		return fmt.Errorf("%q has no format: name the directory of a table or of a partition", at.path)
	}
	return nil
}
