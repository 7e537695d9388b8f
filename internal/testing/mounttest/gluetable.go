package mounttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// GlueTable declares a table of a Glue catalog. Of Table, Manifest is the whole
// TableInput in Glue's own names, where it is not empty; Files lie below the
// table's location, whatever the catalog says of them.
type GlueTable struct {
	Table

	Partitions []GluePartition
}

// GluePartition declares a registered partition.
type GluePartition struct {
	Values     []string
	Format     string            // as Table.Format; "": the table's
	Location   string            // "": below the table's, by the escaped names and values
	Parameters map[string]string // of the partition
	Files      map[string]string // below its location; one that ends in "/" is a marker of a directory
}

// AddGlueTables makes further tables in the catalog, as another program would:
// their databases where they are new, their partitions, and their files.
func (l *Lake) AddGlueTables(tables ...GlueTable) {
	l.t.Helper()
	if l.Catalog == nil {
		l.t.Fatal("the lake's catalog is not Glue")
	}
	for _, t := range tables {
		if err := l.addGlue(t); err != nil {
			l.t.Fatalf("table %s.%s: %v", t.Database, t.Name, err)
		}
	}
}

func (l *Lake) addGlue(t GlueTable) error {
	c := l.Catalog
	if t.Location = c.At(t.Location); t.Location == "" {
		t.Location = l.Location(path.Join(t.Database, t.Name)) + "/"
	}
	input, err := t.input()
	if err != nil {
		return err
	}
	if err := c.database(t.Database); err != nil {
		return err
	}
	if _, err := c.TryCall("CreateTable", map[string]any{"DatabaseName": t.Database, "TableInput": json.RawMessage(c.At(string(input)))}); err != nil {
		return err
	}
	t.Partitions = slices.Clone(t.Partitions)
	for i := range t.Partitions {
		if at := c.At(t.Partitions[i].Location); at != "" {
			t.Partitions[i].Location = at
			continue
		}
		t.Partitions[i].Location = strings.TrimSuffix(t.Location, "/") + "/" + hiveName(t.Keys, t.Partitions[i].Values)
	}
	if err := c.partitions(t); err != nil {
		return err
	}
	return c.files(t)
}

// database makes a database, if there is none of that name.
func (c *Catalog) database(name string) error {
	if _, err := c.TryCall("GetDatabase", map[string]string{"Name": name}); err == nil {
		return nil
	}
	_, err := c.TryCall("CreateDatabase", map[string]any{"DatabaseInput": map[string]string{"Name": name}})
	return err
}

// registeredAtOnce is how many partitions one BatchCreatePartition may have.
const registeredAtOnce = 100

func (c *Catalog) partitions(t GlueTable) error {
	for some := range slices.Chunk(t.Partitions, registeredAtOnce) {
		inputs := make([]any, 0, len(some))
		for _, p := range some {
			sd, err := t.descriptor(p.Format, p.Location)
			if err != nil {
				return err
			}
			inputs = append(inputs, map[string]any{"Values": p.Values, "StorageDescriptor": sd, "Parameters": orEmpty(p.Parameters)})
		}
		out, err := c.TryCall("BatchCreatePartition", map[string]any{"DatabaseName": t.Database, "TableName": t.Name, "PartitionInputList": inputs})
		if err != nil {
			return err
		}
		var answer struct{ Errors []json.RawMessage }
		if err := json.Unmarshal(out, &answer); err != nil || len(answer.Errors) > 0 {
			return fmt.Errorf("register partitions: %s (%w)", out, err)
		}
	}
	return nil
}

// files uploads those of the table and of its partitions.
func (c *Catalog) files(t GlueTable) error {
	var writers errgroup.Group
	writers.SetLimit(uploadsAtOnce)
	put := func(location string, files map[string]string) {
		for name, content := range files {
			writers.Go(func() error { return c.put(location, name, content) })
		}
	}
	put(t.Location, t.Files)
	for _, p := range t.Partitions {
		put(p.Location, p.Files)
	}
	return writers.Wait()
}

// put uploads one file below a location.
func (c *Catalog) put(location, name, content string) error {
	_, rest, _ := strings.Cut(location, "://")
	bucketName, below, _ := strings.Cut(rest, "/")
	if bucketName == "" {
		return fmt.Errorf("no bucket in the location %q of %s", location, name)
	}
	if strings.HasSuffix(name, markerOfFolder) {
		content = ""
	}
	key := strings.TrimSuffix(below, "/") + "/" + name
	if err := (bucket{c.server, bucketName}).putKey(key, content); err != nil {
		return fmt.Errorf("upload %q: %w", key, err)
	}
	return nil
}

// input is the TableInput.
func (t GlueTable) input() ([]byte, error) {
	if t.Manifest != "" {
		return []byte(t.Manifest), nil
	}
	sd, err := t.descriptor(t.Format, t.Location)
	if err != nil {
		return nil, err
	}
	in := map[string]any{
		"Name": t.Name, "TableType": "EXTERNAL_TABLE", "Parameters": orEmpty(t.Parameters),
		"PartitionKeys": glueColumns(t.Keys), "StorageDescriptor": sd,
	}
	if t.Type != "" {
		in["TableType"] = t.Type
	}
	if t.ViewText != "" {
		in["ViewOriginalText"] = t.ViewText
	}
	return json.Marshal(in)
}

// manifestEntry is what a manifest and a Glue entry have in common, by the
// manifest's names.
type manifestEntry struct {
	Descriptor struct {
		Input  string `json:"input_format"`
		Output string `json:"output_format"`
		Serde  struct {
			Library    string            `json:"serialization_library"`
			Parameters map[string]string `json:"parameters"`
		} `json:"serde_info"`
	} `json:"storage_descriptor"`
}

// descriptor is a StorageDescriptor for data of a format ("": the table's) at a
// location.
func (t GlueTable) descriptor(format, location string) (map[string]any, error) {
	like := t.Table
	if like.Manifest = ""; format != "" {
		like.Format = format
	}
	raw, err := like.JSON()
	if err != nil {
		return nil, err
	}
	var m manifestEntry
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	columns := t.Columns
	if columns == nil {
		columns = []string{"id:bigint", "name:string"}
	}
	d := m.Descriptor
	return map[string]any{
		"Columns": glueColumns(columns), "Location": location, "InputFormat": d.Input, "OutputFormat": d.Output,
		"Compressed": false, "NumberOfBuckets": -1, "StoredAsSubDirectories": false,
		"SerdeInfo": map[string]any{"SerializationLibrary": d.Serde.Library, "Parameters": orEmpty(d.Serde.Parameters)},
	}, nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// glueColumns are columns from "name:type" or "name" (a string).
func glueColumns(specs []string) []map[string]string {
	out := make([]map[string]string, 0, len(specs))
	for _, s := range specs {
		name, kind, found := strings.Cut(s, ":")
		if !found {
			kind = "string"
		}
		out = append(out, map[string]string{"Name": name, "Type": kind})
	}
	return out
}

// hiveName is the path of a partition below its table, as Hive escapes it.
func hiveName(keys, values []string) string {
	var names []string
	for i, key := range keys {
		if i == len(values) {
			break
		}
		key, _, _ = strings.Cut(key, ":")
		names = append(names, key+"="+hiveEscape(values[i]))
	}
	return strings.Join(names, "/")
}

func hiveEscape(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c < ' ' || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{[]^`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
