package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/fs"
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

// renderer makes text of files for a mount, in children.
type renderer struct{ children *render.Children }

var _ fs.Renderer = renderer{}

// Render starts a child, or for a spec shows what it would be told.
func (r renderer) Render(ctx context.Context, t fs.Text, src *cache.Handle, size int64) (io.ReadCloser, error) {
	s := renderSpec(t)
	if t.Output == "spec" {
		text, err := json.MarshalIndent(s, "", "  ")
		return io.NopCloser(bytes.NewReader(append(text, '\n'))), err
	}
	child, err := r.children.Start(ctx, s, src, size)
	if err != nil {
		return nil, err
	}
	return rendered{child}, nil
}

// renderSpec is what a child is told of a text.
func renderSpec(t fs.Text) render.Spec {
	s := render.Spec{Name: t.Path, Kind: render.KindRows, Format: t.Format, Output: t.Output, Flat: t.Flat}
	if t.Footer {
		s.Kind = render.KindFooter
	}
	if s.Output == "spec" {
		s.Output = render.OutputJSONL
	}
	for _, c := range t.Columns {
		s.Columns = append(s.Columns, render.Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull})
	}
	for _, k := range t.Keys {
		s.Keys = append(s.Keys, render.Key{Name: k.Name, Type: k.Type, Value: k.Value, Null: k.Null})
	}
	return s
}

// rendered is a child's text as fs has it.
type rendered struct{ *render.Child }

// Read tells what gave way.
func (r rendered) Read(p []byte) (int, error) {
	n, err := r.Child.Read(p)
	if errors.Is(err, render.ErrRested) {
		err = fmt.Errorf("%w: %w", fs.ErrGaveWay, err)
	}
	return n, err
}
