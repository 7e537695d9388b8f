package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/render"
	"github.com/lakefs-mount/lakefs-mount/table"
)

const schemaLong = `Shows the schema of a table as SQL: the statement that makes it in Athena, with its
columns, keys, format and location. What Athena has no equal of is said in comments.

TABLE is the table's directory in a mount. It is the file .lakefs/schema.sql there.`

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [flags] TABLE",
		Short: "Show the schema of a table as SQL",
		Long:  schemaLong,
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := placeOf(cmd.Context(), args[0])
			if err == nil {
				err = at.table(cmd.Context(), "schema")
			}
			if err != nil {
				return err
			}
			text, err := at.schema(cmd.Context())
			if err != nil {
				return err
			}
			if _, err = p.stdout.Write(text); err != nil {
				return fmt.Errorf("write the schema: %w", err)
			}
			return nil
		},
		ValidArgsFunction: completeDirectory,
	}
}

// schema reads the table's schema.sql.
func (at place) schema(ctx context.Context) ([]byte, error) {
	read := func(name string) ([]byte, error) {
		return bounded(ctx, answerTimeout, func() ([]byte, error) { return os.ReadFile(filepath.Join(at.path, ".lakefs", name)) })
	}
	text, err := read("schema.sql")
	if !errors.Is(err, unix.EIO) { //nolint:forbidigo // the mount's answer
		if err != nil {
			err = fmt.Errorf("the schema of %q: %w", at.path, bare(err))
		}
		return text, err
	}
	entry, failed := read("entry.json")
	if failed != nil {
		return nil, fmt.Errorf("the schema of %q: %w; the log of the mount says why", at.path, bare(err))
	}
	if _, err = render.SchemaSQL(at.parse(entry)); err != nil {
		return nil, err // an errno cannot say it
	}
	return nil, fmt.Errorf("the schema of %q could not be read; the log of the mount says why", at.path)
}

// parse reads the entry of the table, which is Glue's or a manifest.
func (at place) parse(entry []byte) *table.Table {
	database, name, _ := strings.Cut(at.below, "/")
	var glue struct{ Table json.RawMessage }
	if err := json.Unmarshal(entry, &glue); err != nil || len(bytes.TrimSpace(glue.Table)) == 0 {
		return table.ParseManifest(database, name, entry, table.Limits{MaxBytes: int64(len(entry))})
	}
	return table.ParseGlue(database, name, glue.Table)
}
