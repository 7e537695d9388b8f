// Package warehouse makes a catalog of JSON manifests and its data in a local
// folder, from a declaration: the demo's lake and the lakes of the tests.
//
// A table's manifest is <root>/<database>/<table>/_sqe/table.json, its data lie
// in <root>/_data/<database>/<table>/ unless Location says otherwise: outside
// every table's manifest directory, as engines that read a location whole want
// it. Writing the same declaration twice leaves the same bytes.
package warehouse

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Table declares one table. The zero value of each field is usable but for
// Database and Name.
type Table struct {
	Database, Name string
	Format         string            // a key of the formats known ("parquet", "csv", "json", …); "": parquet
	Keys           []string          // partition keys, "dt:date" or "dt" (a string)
	Columns        []string          // as Keys; none: id:bigint, name:string
	Location       string            // "": _data/<Database>/<Name>
	Type           string            // Glue's table_type; "": EXTERNAL_TABLE
	ViewText       string            // view_original_text
	Parameters     map[string]string // of the table
	Serde          string            // the SerDe class; "": the format's
	Properties     map[string]string // SerDe properties, beside the format's own
	Manifest       string            // the whole table.json, verbatim, in place of all above
	// Files are the table's data: a path below the location to the content. A
	// path that ends in "/" is an empty directory.
	Files map[string]string
}

// Write makes the tables in the folder root, which must exist. Files that are
// there with other content are overwritten, others are left alone.
func Write(root string, tables ...Table) error {
	files, err := Files(tables...)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := WriteFile(root, name, files[name]); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// Files are the files of the tables, data and manifests, by slash-separated path
// below the warehouse's root; one that ends in "/" is an empty directory.
func Files(tables ...Table) (map[string]string, error) {
	files := make(map[string]string)
	for _, t := range tables {
		raw, err := t.JSON()
		if err != nil {
			return nil, fmt.Errorf("table %s.%s: %w", t.Database, t.Name, err)
		}
		files[path.Join(t.Database, t.Name, "_sqe", "table.json")] = string(raw)
		for name, content := range t.Files {
			below := path.Join(t.location(), name)
			if strings.HasSuffix(name, "/") {
				below += "/"
			}
			files[below] = content
		}
	}
	return files, nil
}

// WriteFile makes the file at the slash-separated path name below root, with
// the directories on the way; a name that ends in "/" is a directory alone.
func WriteFile(root, name, content string) error {
	full := filepath.Join(root, filepath.FromSlash(name))
	if strings.HasSuffix(name, "/") {
		return os.MkdirAll(full, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	if old, err := os.ReadFile(full); err == nil && string(old) == content {
		return nil
	}
	return os.WriteFile(full, []byte(content), 0o644)
}

func (t Table) location() string {
	if t.Location != "" {
		return t.Location
	}
	return path.Join("_data", t.Database, t.Name)
}

// JSON is the table's manifest, indented, with Glue's names in snake_case.
func (t Table) JSON() ([]byte, error) {
	if t.Manifest != "" {
		return []byte(t.Manifest), nil
	}
	f, err := t.format()
	if err != nil {
		return nil, err
	}
	properties := maps.Clone(f.properties)
	if properties == nil {
		properties = map[string]string{}
	}
	maps.Copy(properties, t.Properties)
	m := manifest{
		Version: 1, Type: orElse(t.Type, "EXTERNAL_TABLE"), Database: t.Database, Name: t.Name,
		Keys: columns(t.Keys), Parameters: t.Parameters, ViewText: t.ViewText,
		Descriptor: descriptor{
			Location: t.location() + "/", InputFormat: f.input, OutputFormat: f.output,
			Serde:   serde{Library: orElse(t.Serde, f.serde), Parameters: properties},
			Columns: columns(t.Columns), SortColumns: []string{},
		},
	}
	if m.Parameters == nil {
		m.Parameters = map[string]string{}
	}
	if t.Columns == nil {
		m.Descriptor.Columns = columns([]string{"id:bigint", "name:string"})
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

type manifest struct {
	Version    int               `json:"manifest_version"`
	Type       string            `json:"table_type"`
	Database   string            `json:"database_name"`
	Name       string            `json:"name"`
	Keys       []column          `json:"partition_keys"`
	Parameters map[string]string `json:"parameters"`
	ViewText   string            `json:"view_original_text,omitempty"`
	Descriptor descriptor        `json:"storage_descriptor"`
}

type descriptor struct {
	Location     string   `json:"location"`
	InputFormat  string   `json:"input_format"`
	OutputFormat string   `json:"output_format"`
	Serde        serde    `json:"serde_info"`
	Columns      []column `json:"columns"`
	SortColumns  []string `json:"sort_columns"`
}

type serde struct {
	Library    string            `json:"serialization_library"`
	Parameters map[string]string `json:"parameters"`
}

type column struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Comment *string `json:"comment"`
}

func columns(specs []string) []column {
	out := make([]column, 0, len(specs))
	for _, s := range specs {
		name, typ, found := strings.Cut(s, ":")
		if !found {
			typ = "string"
		}
		out = append(out, column{Name: name, Type: typ})
	}
	return out
}
