package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits bound what an entry may hold (rule 42). Zero fields stand for 1 MiB,
// 4096 and 32.
type Limits struct {
	MaxBytes            int64
	MaxColumns, MaxKeys int
}

// OrDefault returns l with its zero fields filled.
func (l Limits) OrDefault() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = 1 << 20
	}
	if l.MaxColumns == 0 {
		l.MaxColumns = 4096
	}
	if l.MaxKeys == 0 {
		l.MaxKeys = 32
	}
	return l
}

// entry is what a catalog's entry holds beyond the Table made of it.
type entry struct {
	*Table
	dialect   dialect
	tableType string
	viewText  string   // Glue's alone
	refused   []string // bucketing, skew: reasons, in order
}

// ParseManifest reads a manifest (rule 41) found at database/name. It never
// returns nil: an entry that does not load is of kind Broken. raw is not kept.
func ParseManifest(database, name string, raw []byte, l Limits) *Table {
	l = l.OrDefault()
	if int64(len(raw)) > l.MaxBytes {
		return TooLarge(database, name, int64(len(raw)), l)
	}
	e, err := readManifest(raw, l)
	if err == nil {
		err = e.checkNames(database, name)
	}
	if err == nil {
		err = e.checkKeys()
	}
	if err == nil {
		e.Database, e.Name = database, name
		err = e.judge()
	}
	if err != nil {
		return NewBroken(database, name, ClassBroken, "manifest: "+err.Error())
	}
	return e.Table
}

// TooLarge returns the Table of a manifest of size bytes, over l.MaxBytes.
func TooLarge(database, name string, size int64, l Limits) *Table {
	return NewBroken(database, name, ClassBroken,
		fmt.Sprintf("manifest: it has %d bytes, over the limit of %d bytes a manifest", size, l.OrDefault().MaxBytes))
}

func readManifest(raw []byte, l Limits) (*entry, error) {
	tree, err := parseTree(raw)
	if err != nil {
		return nil, err
	}
	root := node{v: tree}
	if err = checkVersion(root); err != nil {
		return nil, err
	}
	e := &entry{Table: &Table{}}
	if err = e.readTop(root, l); err != nil {
		return nil, err
	}
	sqe, err := root.child("sqe")
	if err != nil {
		return nil, err
	}
	if e.Secret, err = sqe.text("secret"); err != nil {
		return nil, err
	}
	return e, e.readStorage(root, l)
}

func checkVersion(root node) error {
	v, err := root.child("manifest_version")
	if err != nil {
		return err
	}
	if v.v == nil {
		return fmt.Errorf("manifest_version is missing; 1 is known")
	}
	n, err := root.integer("manifest_version")
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("manifest_version is %d; 1 is known", n)
	}
	return nil
}

func (e *entry) readTop(root node, l Limits) (err error) {
	if e.Database, err = root.text("database_name"); err != nil {
		return err
	}
	if e.Name, err = root.text("name"); err != nil {
		return err
	}
	if e.tableType, err = root.text("table_type"); err != nil {
		return err
	}
	if e.Parameters, err = root.scalars("parameters"); err != nil {
		return err
	}
	e.Description, _ = root.text("description") // nothing depends on it: what is no text is passed over
	keys, err := root.list("partition_keys")
	if err != nil {
		return err
	}
	if len(keys) > l.MaxKeys {
		return fmt.Errorf("it has %d partition keys, over the limit of %d partition keys", len(keys), l.MaxKeys)
	}
	e.Keys, err = readColumns(keys)
	return err
}

func readColumns(items []node) ([]Column, error) {
	cols := make([]Column, 0, len(items))
	for _, item := range items {
		if _, ok := item.v.(map[string]any); !ok {
			return nil, item.mismatch("an object")
		}
		var c Column
		var err error
		if c.Name, err = item.text("name"); err != nil {
			return nil, err
		}
		if c.Type, err = item.text("type"); err != nil {
			return nil, err
		}
		if c.Comment, err = item.text("comment"); err != nil {
			return nil, err
		}
		if c.Name == "" {
			return nil, fmt.Errorf("%s.%s is missing", item.path, item.dialect.field("name"))
		}
		cols = append(cols, c)
	}
	return cols, nil
}

func (e *entry) readStorage(root node, l Limits) error {
	sd, err := root.child("storage_descriptor")
	if err != nil {
		return err
	}
	cols, err := sd.list("columns")
	if err != nil {
		return err
	}
	if len(cols) > l.MaxColumns {
		return fmt.Errorf("it has %d columns, over the limit of %d columns", len(cols), l.MaxColumns)
	}
	if e.Columns, err = readColumns(cols); err != nil {
		return err
	}
	if e.Location, err = sd.text("location"); err != nil {
		return err
	}
	if e.InputFormat, err = sd.text("input_format"); err != nil {
		return err
	}
	if e.Storage.OutputFormat, err = sd.text("output_format"); err != nil {
		return err
	}
	serde, err := sd.child("serde_info")
	if err != nil {
		return err
	}
	if e.Serde, err = serde.text("serialization_library"); err != nil {
		return err
	}
	if e.Storage.SerdeProperties, err = serde.scalars("parameters"); err != nil {
		return err
	}
	return e.readLayout(sd)
}

// readLayout notes bucketing and skew (rule 47).
func (e *entry) readLayout(sd node) error {
	buckets, err := sd.integer("number_of_buckets")
	if err != nil {
		return err
	}
	columns, err := sd.list("bucket_columns")
	if err != nil {
		return err
	}
	if e.dialect.bucketed(buckets, len(columns)) {
		e.Storage.Buckets, e.Storage.BucketColumns = max(buckets, 0), texts(columns)
		e.refused = append(e.refused, fmt.Sprintf("bucketing (%d buckets): rows must go to their bucket's file", max(buckets, 0)))
	}
	skew, err := sd.child("skewed_info")
	if err != nil {
		return err
	}
	skewed, err := skew.list("skewed_column_names")
	if err != nil {
		return err
	}
	sub, err := sd.boolean("stored_as_sub_directories")
	if err != nil {
		return err
	}
	e.Storage.SkewedColumns = texts(skewed)
	if len(skewed) > 0 || sub {
		e.refused = append(e.refused, "skew: skewed values have directories of their own")
	}
	return nil
}

// texts are those of the items that are strings.
func texts(items []node) (out []string) {
	for _, item := range items {
		if s, ok := item.v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// checkNames: an entry must be where it says it is; one without names takes
// its directory's.
func (e *entry) checkNames(database, name string) error {
	if e.Database != "" && e.Database != database {
		return fmt.Errorf("database_name is %.300q, its directory %q", e.Database, database)
	}
	if e.Name != "" && e.Name != name {
		return fmt.Errorf("name is %.300q, its directory %q", e.Name, name)
	}
	return nil
}

// checkKeys: keys must be distinct without case.
func (e *entry) checkKeys() error {
	seen := make(map[string]bool, len(e.Keys))
	for _, k := range e.Keys {
		lower := strings.ToLower(k.Name)
		if seen[lower] {
			return fmt.Errorf("partition key %q is there twice", k.Name)
		}
		seen[lower] = true
	}
	return nil
}

// sortedKeys makes messages about maps deterministic.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
