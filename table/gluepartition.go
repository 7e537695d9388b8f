package table

import (
	"errors"
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
}

// ParseGluePartition reads one partition as Glue sends it (an element of
// GetPartitions' list, or GetPartition's "Partition"). The error of one that cannot
// be used says why, and its Values are set as far as they were read. raw is not kept.
func (t *Table) ParseGluePartition(raw []byte) (Partition, error) {
	return Partition{}, errors.New("not yet")
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
