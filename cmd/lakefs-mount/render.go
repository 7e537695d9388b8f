package main

import (
	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/render"
)

// renderCommand is the process that reads a file for render.Children: nobody else calls
// it, for its standard input is a socket.
func (p *program) renderCommand() *cobra.Command {
	return &cobra.Command{
		Use: "render", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if render.Main(nil) != 0 {
				return errReported // to the parent
			}
			return nil
		},
	}
}
