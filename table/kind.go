package table

import (
	"fmt"
	"strings"
)

const (
	providerKey     = "spark.sql.sources.provider"
	placeholderTail = "-__PLACEHOLDER__"
)

// judge fills kind, columns, format, location, partitions and verdict from what was
// read. An error is a load error.
func (e *entry) judge() error {
	var from string
	e.Kind, from = e.kind()
	e.NullName = HiveNull
	e.Strict = e.dialect.refusesUnknown()
	switch e.Kind {
	case View:
		e.Class, e.Reason = ClassView, "a view has no files"
		return nil
	case Link:
		e.Class, e.Reason = ClassView, "a resource link to "+e.Target.String()
		return nil
	}
	schema, err := readSchema(e.Parameters)
	if err != nil {
		return err
	}
	if err = e.settleLocation(); err != nil {
		return err
	}
	if err = e.settleColumns(schema); err != nil {
		return err
	}
	if e.Kind == FormatTable {
		e.readFormatTable()
	} else {
		e.settleFormat(from)
	}
	if err = e.settlePartitions(); err != nil {
		return err
	}
	e.settleVerdict()
	e.settleNotes()
	return nil
}

// provider is the data source's name in lower case, the short one of those that have a
// class of Spark's; "" for none and for hive (rule 8).
func (t *Table) provider() string {
	p := strings.ToLower(strings.TrimSpace(t.Parameters[providerKey]))
	if p == "hive" {
		return ""
	}
	return sparkSource(p)
}

// kind says what sort of table it is, and which part of the entry told, where that
// is the format too.
func (e *entry) kind() (k Kind, from string) {
	switch {
	case e.Target != nil:
		return Link, ""
	case e.isView():
		return View, ""
	case strings.EqualFold(e.Parameters["type"], "format-table"):
		return FormatTable, ""
	}
	if k = lakeFormat(e.provider()); k != "" {
		return k, "provider"
	}
	if k = lakeFormat(strings.ToLower(e.Parameters["table_type"])); k != "" {
		return k, "table_type"
	}
	if k, from = e.kindByClass(); k != "" {
		return k, from
	}
	if e.Parameters["metadata_location"] != "" {
		return Iceberg, "metadata_location"
	}
	return Hive, ""
}

func (e *entry) isView() bool {
	switch strings.ToUpper(e.tableType) {
	case "VIRTUAL_VIEW", "MATERIALIZED_VIEW", "VIEW":
		return true
	}
	switch strings.ToLower(e.Parameters["table_type"]) {
	case "view", "iceberg-view":
		return true
	}
	return strings.EqualFold(e.Parameters["presto_view"], "true") || e.provider() == "view" ||
		e.viewText != "" && e.Location == "" && e.Storage.SerdeProperties["path"] == ""
}

// lakeFormat finds a format with a log of its own in a provider's or
// table_type's name, the class of a Spark data source included.
func lakeFormat(name string) Kind {
	switch {
	case name == "delta", strings.HasPrefix(name, "io.delta.sql"), strings.HasPrefix(name, "org.apache.spark.sql.delta."), name == "com.databricks.sql.transaction.tahoe":
		return Delta
	case name == "iceberg", strings.HasPrefix(name, "org.apache.iceberg."):
		return Iceberg
	case name == "hudi", name == "org.apache.hudi", strings.HasPrefix(name, "org.apache.hudi."):
		return Hudi
	}
	return ""
}

func (e *entry) kindByClass() (k Kind, from string) {
	for _, c := range []struct{ what, class string }{
		{"input format", e.InputFormat}, {"serde", e.Serde}, {"storage_handler", e.Parameters["storage_handler"]},
	} {
		from = c.what + " " + c.class
		switch {
		case strings.HasPrefix(c.class, "org.apache.hudi."), strings.HasPrefix(c.class, "com.uber.hoodie."):
			return Hudi, from
		case strings.HasPrefix(c.class, "org.apache.iceberg."):
			return Iceberg, from
		case strings.HasPrefix(c.class, "io.delta.hive."):
			return Delta, from
		}
	}
	return "", ""
}

// settleLocation: rules 3 and 4. A placeholder is no location, wherever it stands.
func (e *entry) settleLocation() error {
	location := e.Location
	if path := e.Storage.SerdeProperties["path"]; path != "" && !placeholder(path) {
		e.Location = path
		return nil
	}
	field := e.dialect.field("storage_descriptor.location")
	if location == "" {
		return fmt.Errorf("%s is missing", field)
	}
	if placeholder(location) {
		return fmt.Errorf("%s is only a placeholder (%.300q) and %s has no path",
			field, location, e.dialect.field("serde_info"))
	}
	return nil
}

func placeholder(location string) bool {
	return strings.HasSuffix(strings.TrimRight(location, "/"), placeholderTail)
}

// readFormatTable: rules 17, 18, 20, 34.
func (e *entry) readFormatTable() {
	e.Format, e.FormatFrom = strings.ToLower(e.Parameters["file.format"]), "file.format"
	if e.Format == "" {
		e.FormatFrom = ""
	}
	e.PathOnlyValue = strings.EqualFold(e.Parameters["format-table.partition-path-only-value"], "true")
	e.LegacyDate = !strings.EqualFold(e.Parameters["partition.legacy-name"], "false")
	e.NullName = e.Parameters["partition.default-name"]
	if e.NullName == "" {
		e.NullName = formatTableNull
	}
}
