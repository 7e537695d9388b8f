package table

import (
	"fmt"
	"strings"
)

// settleVerdict says what may be done with a table that loads. Raw files stay
// readable; what would make a write wrong is named (rules 36, 37, 47).
func (e *entry) settleVerdict() {
	e.Readable = true
	var reasons []string
	switch e.Kind {
	case Delta:
		reasons = []string{"a Delta table: its log decides which files count; write with Delta Lake"}
	case Iceberg:
		reasons = []string{"an Iceberg table: its snapshots decide which files count (those of old snapshots are listed too); write through a catalog of Iceberg's own (GlueCatalog)"}
	case Hudi:
		reasons = []string{"a Hudi table: its timeline decides which files count; write with Hudi"}
	case FormatTable:
		reasons = e.refusedOptions()
	default:
		reasons = e.refusedHive()
	}
	const most = 20 // an untrusted entry may hold thousands
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more", n))
	}
	if len(reasons) > 0 {
		e.Class, e.Reason = ClassReadOnly, strings.Join(reasons, "; ")
		return
	}
	e.Writable = true
}

// refusedOptions: rules 17, 36 and 37.
func (e *entry) refusedOptions() []string {
	var r []string
	switch e.Format {
	case "parquet", "orc":
	case "":
		r = append(r, "file.format is not set; parquet and orc are known")
	default:
		r = append(r, fmt.Sprintf("file.format=%.100s is not known; parquet and orc are", e.Parameters["file.format"]))
		e.Format, e.FormatFrom = "", ""
	}
	if v, ok := e.Parameters["metastore.partitioned-table"]; ok && !strings.EqualFold(v, "false") {
		r = append(r, fmt.Sprintf("metastore.partitioned-table=%.100s: the catalog would decide which partitions are visible", v))
	}
	if v := e.Parameters["format-table.commit-hive-sync-url"]; v != "" {
		r = append(r, "format-table.commit-hive-sync-url: partitions would have to be registered in a Hive metastore")
	}
	if v := e.Parameters["branch"]; v != "" && v != "main" {
		r = append(r, fmt.Sprintf("branch=%.100s: a format table has no branches", v))
	}
	for _, k := range e.Keys {
		if !formatKeyType(k.Type) {
			r = append(r, fmt.Sprintf("partition key %s of type %.100s: a format table's keys are boolean, tinyint, smallint, int, bigint, string or date", k.Name, k.Type))
		}
	}
	if len(e.Keys) > 0 && e.dataColumns() == 0 {
		r = append(r, "every column is a partition column")
	}
	return r
}

// dataColumns counts the columns that are no partition keys.
func (e *entry) dataColumns() int {
	keys := byName(e.Keys)
	n := 0
	for _, c := range e.Columns {
		if _, isKey := keys[strings.ToLower(c.Name)]; !isKey {
			n++
		}
	}
	return n
}

// refusedHive: rule 47, and what writers to Glue mean to keep plain files out. The
// SerDe of a data source table says nothing.
func (e *entry) refusedHive() []string {
	var r []string
	if p := e.provider(); p != "" {
		if e.Format == "" {
			r = append(r, fmt.Sprintf("data source %.100s is not known", p))
		}
	} else {
		if t := e.Parameters["table_type"]; !plainTableType(t) {
			r = append(r, fmt.Sprintf("table type %.100s is not known (parameter table_type): its own metadata may decide which files count", t))
		}
		if e.dialect.refusesUnknown() {
			r = append(r, e.refusedSerde()...)
		}
	}
	if symlink(e.InputFormat) {
		r = append(r, fmt.Sprintf("input format %.200s: the files are lists of paths, not rows", e.InputFormat))
	}
	if strings.EqualFold(e.tableType, "GOVERNED") {
		r = append(r, "a governed table: Lake Formation's transactions decide which files count")
	}
	r = append(r, e.refusedParameters()...)
	r = append(r, e.refused...)
	if e.dialect.refusesUnknown() {
		r = append(r, e.nestedColumns()...)
	}
	return r
}

// plainTableType says that a parameter table_type means an ordinary table. Formats
// with a log of their own, and views, are told by kind.
func plainTableType(t string) bool {
	switch strings.ToUpper(strings.TrimSpace(t)) {
	case "", "EXTERNAL", "EXTERNAL_TABLE", "MANAGED", "MANAGED_TABLE", "TABLE", "HIVE":
		return true
	}
	return false
}

// refusedTransactions: Hive reads of an ACID table what its transactions wrote, in
// base_ and delta_ directories. An insert-only one is of that kind too.
func (e *entry) refusedTransactions() []string {
	is, properties := e.hiveProperty("transactional"), e.hiveProperty("transactional_properties")
	switch {
	case strings.EqualFold(is, "true"):
		return []string{"transactional=true: Hive's transactions decide which files count; write with Hive"}
	case is == "" && strings.EqualFold(properties, "insert_only"):
		return []string{"transactional_properties=insert_only: Hive's transactions decide which files count; write with Hive"}
	}
	return nil
}

// hiveProperty is a parameter by its name in any case, which Hive takes of these;
// in lower case it is the one that counts.
func (e *entry) hiveProperty(name string) string {
	if v, ok := e.Parameters[name]; ok {
		return strings.TrimSpace(v)
	}
	for _, k := range sortedKeys(e.Parameters) {
		if strings.EqualFold(k, name) {
			return strings.TrimSpace(e.Parameters[k])
		}
	}
	return ""
}

func (e *entry) refusedParameters() []string {
	r := e.refusedTransactions()
	for _, k := range sortedKeys(e.Parameters) {
		v := e.Parameters[k]
		switch {
		case strings.HasPrefix(k, "projection.") && e.dialect.refusesUnknown():
			r = append(r, k+": partition projection is not for manifests")
		case k == "has_encrypted_data" && !strings.EqualFold(v, "false"):
			r = append(r, "has_encrypted_data: files would have to be encrypted")
		case k == "storage_handler" && v != "":
			r = append(r, fmt.Sprintf("STORED BY %.200s", v))
		case k == schemaKey+".numBuckets" && v != "" && v != "0":
			r = append(r, fmt.Sprintf("bucketing (%s=%.40s): rows must go to their bucket's file", k, v))
		}
	}
	return r
}

func (e *entry) refusedSerde() []string {
	var r []string
	if unknownSerde(e.Serde) {
		r = append(r, fmt.Sprintf("SerDe class %.200s is not known", e.Serde))
	}
	for _, k := range sortedKeys(e.Storage.SerdeProperties) {
		if !knownSerdeProperty(k) {
			r = append(r, fmt.Sprintf("SerDe property %.200s is not known", k))
		}
	}
	return r
}

// knownSerdeProperty: rule 47, and rule 3's path.
func knownSerdeProperty(key string) bool {
	switch key {
	case "field.delim", "serialization.format", "line.delim", "escape.delim", "serialization.null.format",
		"separatorChar", "quoteChar", "escapeChar", "skip.header.line.count", "ignore.malformed.json", "path":
		return true
	}
	return false
}

// PlaceholderColumns says that the columns are Spark's stand-in of a data source
// table: one, "col array<string>".
func (t *Table) PlaceholderColumns() bool {
	return t.provider() != "" && len(t.Columns) == 1 && t.Columns[0].Name == "col" && t.Columns[0].Type == "array<string>"
}

// nestedColumns names the columns that hold others.
func (e *entry) nestedColumns() []string {
	if e.PlaceholderColumns() {
		return nil
	}
	var r []string
	for _, c := range append(e.Columns[:len(e.Columns):len(e.Columns)], e.Keys...) {
		if nested(c.Type) {
			r = append(r, fmt.Sprintf("column %.200s is nested (%.100s)", c.Name, c.Type))
		}
		if len(r) == 10 {
			break
		}
	}
	return r
}

// settleNotes: what a user should know of a table that can be used (rule 11).
func (e *entry) settleNotes() {
	switch e.Kind {
	case Iceberg:
		e.Notes = append(e.Notes, "files of old snapshots are listed too; Iceberg's metadata says which count")
	case Delta:
		e.Notes = append(e.Notes, "files that the table no longer counts are listed too; its _delta_log says which do")
	case Hudi:
		e.Notes = append(e.Notes, "files of old commits are listed too; Hudi's timeline (.hoodie) says which count")
	case Hive:
		e.noteHive()
	}
}

func (e *entry) noteHive() {
	if e.provider() != "" {
		return
	}
	if unknownSerde(e.Serde) && !e.dialect.refusesUnknown() {
		e.Notes = append(e.Notes, fmt.Sprintf("SerDe class %.200s is not known: the files' first bytes tell their format", e.Serde))
	}
	if e.dialect.needsProvider() && e.Parameters[providerKey] == "" {
		e.Notes = append(e.Notes, "a Hive SerDe table without "+providerKey+": gluecat and Spark's data source path refuse it")
	}
}
