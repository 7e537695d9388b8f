package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const rootLong = `lakefs-mount shows a data lake's catalog as a file system: databases and tables
are directories, their entries JSON files beside them, their data plain files.
What a program writes becomes visible whole, or not at all.

    lakefs-mount demo                          a small lake to try
    lakefs-mount mount /srv/warehouse /mnt     your own, in a local folder
    lakefs-mount mount s3://lake/wh/ /mnt      or in a bucket
    lakefs-mount mount glue: ~/lake            or an AWS Glue catalog
    lakefs-mount unmount /mnt

Called as mount(8) calls it (SOURCE MOUNTPOINT [-o opt,opt], from fstab or as
mount.lakefs-mount) it mounts in the background; each flag of mount is an option.`

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:               "lakefs-mount",
		Short:             "Mount a data lake's catalog as a file system",
		Long:              rootLong,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeMount,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	style := addStyleFlags(root)
	_ = root.RegisterFlagCompletionFunc("options", p.completeOptions) // the flag is there
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && len(style.options) == 0 {
			return cmd.Help()
		}
		if len(args) == 2 && !p.likelyCommand(root, args[0]) {
			return p.mountStyle(cmd.Context(), style, args[0], args[1])
		}
		if len(args) == 0 {
			return usagef("-o needs SOURCE and MOUNTPOINT before it")
		}
		return usagef("unknown command %q%s", args[0], settings.Suggest(args[0], commandNames(root)))
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.AddCommand(p.mountCommand(), p.unmountCommand(), p.statusCommand(), p.topCommand(), p.recoverCommand(),
		p.commitCommand(), p.abortCommand(), p.repairCommand(), p.setFormatCommand(), p.schemaCommand(), p.rowsCommand(), p.duCommand(),
		p.refreshCommand(), p.warmCommand(), p.renderCommand(), p.askCommand(), p.checkCommand(), p.demoCommand(),
		p.configCommand(), p.completionCommand(), p.manCommand(), p.versionCommand())
	return root
}

// likelyCommand: a first word that is no path and close to a command is a
// mistyped command, not a SOURCE.
func (p *program) likelyCommand(root *cobra.Command, word string) bool {
	if strings.ContainsAny(word, "/.:") || isDirectory(word) {
		return false
	}
	nearest := settings.Nearest(word, commandNames(root))
	return settings.Distance(word, nearest) <= 2
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// flagError adds the nearest flag to the parser's message on an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && errors.As(err, &number) {
		return usagef("--%s %q: it is %s", invalid.GetFlag().Name, invalid.GetValue(), wantedOf(number))
	}
	name, found := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !found {
		return usageError{err}
	}
	var names []string
	for s := range settings.All() {
		if cmd.Flags().Lookup(s.Name) != nil {
			names = append(names, "--"+s.Name)
		}
	}
	if len(names) == 0 {
		return usageError{err}
	}
	return usagef("unknown flag --%s%s", name, settings.Suggest("--"+name, names))
}

// wantedOf says what a text should be that did not parse.
func wantedOf(err *strconv.NumError) string {
	switch {
	case err.Func == "ParseBool":
		return "true or false"
	case errors.Is(err, strconv.ErrRange):
		return "a whole number, and not so large a one"
	}
	return "a whole number"
}

// arguments checks the number of arguments, with an error that shows the form.
func arguments(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || (high >= 0 && len(args) > high) {
			return usagef("%s takes %s, was given %s", cmd.CommandPath(), strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath()+" "), countOf(len(args), "argument"))
		}
		return nil
	}
}

// countOf is "1 argument", "2 arguments".
func countOf(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// absolute makes a path absolute and clean.
func absolute(what, path string) (string, error) {
	if path == "" {
		return "", usagef("%s is empty", what)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", what, path, err)
	}
	return abs, nil
}
