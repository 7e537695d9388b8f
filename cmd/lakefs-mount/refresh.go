package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) refreshCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "refresh [flags] PATH",
		Short: "Drop cached metadata below PATH",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := mountPoint(args[0])
			if err != nil {
				return err
			}
			m, err := mountOf(path)
			if err != nil {
				return err
			}
			if m.ro {
				return fmt.Errorf("%q is mounted read-only, where a command cannot be written; send SIGHUP to the process that serves it: it drops everything", m.path)
			}
			below := strings.TrimPrefix(strings.TrimPrefix(path, m.path), "/")
			return writeControl(cmd.Context(), m.path, strings.TrimSuffix("refresh "+filepath.ToSlash(below), " "), answerTimeout)
		},
	}
}
