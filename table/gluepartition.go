package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Partition is one registered partition of a table.
type Partition struct {
	Values   []string // one a key, as the catalog holds them
	Location string   // as the entry holds it; "" if none
	// Format and FormatFrom as those of Table: the partition's own (rule 57).
	Format, FormatFrom string
	InputFormat        string // the class; "" if none (rule 58)
	Created            time.Time
	// Broken says why the entry cannot be used; then Values are what was read of them,
	// and no path leads there. "": it can.
	Broken string
	// ReadOnly says why no plain files may be written into it; "": they may.
	ReadOnly string
}

// ParseGluePartition reads one partition as Glue sends it (an element of
// GetPartitions' list, or GetPartition's "Partition"). The error of one that cannot
// be used says why, and its Values are set as far as they were read. raw is not kept.
//
// A listing calls it a hundred thousand times: columns are skipped unread, and what
// a partition has in common with its table is not held again.
func (t *Table) ParseGluePartition(raw []byte) (Partition, error) {
	var g gluePartition
	err := json.Unmarshal(raw, &g)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) { // an emulator's "" for {}, or what is no partition
		err = g.readLoose(raw)
	}
	p := t.partition(&g)
	if err == nil && len(p.Values) != len(t.Keys) {
		err = fmt.Errorf("it has %d values, the table %d partition keys", len(p.Values), len(t.Keys))
	}
	if err != nil {
		return p, fmt.Errorf("%s.%s: partition %.1000q: %w", t.Database, t.Name, p.Values, err)
	}
	return p, nil
}

// gluePartition is what is needed of a partition's entry.
type gluePartition struct {
	Values            []string
	CreationTime      epoch
	StorageDescriptor struct {
		Location, InputFormat  string
		NumberOfBuckets        int64
		BucketColumns          []string
		StoredAsSubDirectories bool
		SerdeInfo              struct {
			SerializationLibrary string
			Parameters           struct {
				FieldDelim string `json:"field.delim"`
			}
		}
	}
}

// readLoose reads what a struct can not: empty values of another type are absent
// (see dialect.absent), and errors name the field.
func (g *gluePartition) readLoose(raw []byte) error {
	*g = gluePartition{}
	tree, err := parseLoose(raw, maxDepth)
	if err != nil {
		return err
	}
	root := node{dialect: glueDialect, v: tree}
	values, err := root.list("values")
	if err != nil {
		return err
	}
	for _, v := range values {
		s, ok := v.v.(string)
		if !ok {
			return v.mismatch("a string")
		}
		g.Values = append(g.Values, s)
	}
	if n, ok := tree["CreationTime"].(json.Number); ok {
		g.CreationTime = parseEpoch(n.String())
	}
	sd, err := root.child("storage_descriptor")
	if err != nil {
		return err
	}
	s := &g.StorageDescriptor
	if s.Location, err = sd.text("location"); err != nil {
		return err
	}
	if s.InputFormat, err = sd.text("input_format"); err != nil {
		return err
	}
	if err = g.readLooseLayout(sd); err != nil {
		return err
	}
	serde, err := sd.child("serde_info")
	if err != nil {
		return err
	}
	if s.SerdeInfo.SerializationLibrary, err = serde.text("serialization_library"); err != nil {
		return err
	}
	properties, err := serde.scalars("parameters")
	s.SerdeInfo.Parameters.FieldDelim = properties["field.delim"]
	return err
}

func (g *gluePartition) readLooseLayout(sd node) (err error) {
	s := &g.StorageDescriptor
	if s.NumberOfBuckets, err = sd.integer("number_of_buckets"); err != nil {
		return err
	}
	if s.StoredAsSubDirectories, err = sd.boolean("stored_as_sub_directories"); err != nil {
		return err
	}
	columns, err := sd.list("bucket_columns")
	s.BucketColumns = make([]string, len(columns)) // their number counts
	return err
}

// readOnly is what makes plain files harmful in this partition alone, as in a whole
// table (rule 57).
func (g *gluePartition) readOnly() string {
	sd := &g.StorageDescriptor
	switch {
	case symlink(sd.InputFormat):
		return fmt.Sprintf("input format %.200s of the partition: the files are lists of paths, not rows", sd.InputFormat)
	case glueDialect.bucketed(sd.NumberOfBuckets, len(sd.BucketColumns)):
		return fmt.Sprintf("bucketing of the partition (%d buckets): rows must go to their bucket's file", sd.NumberOfBuckets)
	case sd.StoredAsSubDirectories:
		return "skew of the partition: skewed values have directories of their own"
	}
	return ""
}

// partition makes a Partition of what was read. Its location is its own descriptor's:
// the SerDe parameter path, which writers copy from the table, says nothing (rule 3).
func (t *Table) partition(g *gluePartition) Partition {
	sd := &g.StorageDescriptor
	p := Partition{Values: g.Values, Location: sd.Location, InputFormat: sd.InputFormat, Created: time.Time(g.CreationTime), ReadOnly: g.readOnly()}
	if p.InputFormat == t.InputFormat {
		p.InputFormat = t.InputFormat // one string for all
	}
	if t.Kind != Hive || t.provider() != "" {
		p.Format, p.FormatFrom = t.Format, t.FormatFrom
		return p
	}
	serde := sd.SerdeInfo
	format, from := glueDialect.classFormat(serde.SerializationLibrary, p.InputFormat, serde.Parameters.FieldDelim != "")
	if from == t.FormatFrom {
		from = t.FormatFrom
	}
	p.Format, p.FormatFrom = format, from
	return p
}

// epoch is a time as Glue sends it: seconds since 1970 as a number. What is none is
// the zero time, for the partition is no worse for it.
type epoch time.Time

// UnmarshalJSON never fails.
func (e *epoch) UnmarshalJSON(b []byte) error {
	*e = parseEpoch(string(b))
	return nil
}

func parseEpoch(s string) epoch {
	const end = 253402300800 // of the year 9999
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 || f >= end {
		return epoch{}
	}
	return epoch(time.UnixMicro(int64(math.Round(f * 1e6))).UTC())
}

// PartitionName is the directory name of a partition's value at a level: KEY=VALUE,
// escaped the Hive way. An empty value is "KEY=".
func (t *Table) PartitionName(value string, level int) string {
	return Escape(t.Keys[level].Name) + "=" + Escape(value)
}

// PartitionText returns the value that a name stands for as PartitionName would
// have made it; ok is false where it is another spelling, or no partition's name.
func (t *Table) PartitionText(name string, level int) (value string, ok bool) {
	if level >= len(t.Keys) {
		return "", false
	}
	value, ok = t.valueText(name, level)
	return value, ok && t.PartitionName(value, level) == name
}
