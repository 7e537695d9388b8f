package table

import (
	"errors"
	"fmt"
	"strings"
)

const (
	providerKey     = "spark.sql.sources.provider"
	placeholderTail = "-__PLACEHOLDER__"
)

// judge fills kind, format, location and verdict from what was read. An error
// is a load error.
func (e *entry) judge() error {
	e.Kind = e.kind()
	e.NullName = HiveNull
	if e.Kind == View {
		e.Class, e.Reason = ClassView, "a view has no files"
		return nil
	}
	if err := checkSchema(e.Parameters); err != nil {
		return err
	}
	if err := e.settleLocation(); err != nil {
		return err
	}
	if e.Kind == FormatTable {
		e.readFormatTable()
	} else {
		e.settleFormat()
	}
	e.settleVerdict()
	return nil
}

// provider is the data source's name in lower case, "" for none and for hive
// (rule 8).
func (e *entry) provider() string {
	p := strings.ToLower(strings.TrimSpace(e.Parameters[providerKey]))
	if p == "hive" {
		return ""
	}
	return p
}

func (e *entry) kind() Kind {
	switch {
	case e.isView():
		return View
	case strings.EqualFold(e.Parameters["type"], "format-table"):
		return FormatTable
	}
	if k := lakeFormat(e.provider()); k != "" {
		return k
	}
	if k := lakeFormat(strings.ToLower(e.Parameters["table_type"])); k != "" {
		return k
	}
	if k := e.kindByClass(); k != "" {
		return k
	}
	if e.Parameters["metadata_location"] != "" {
		return Iceberg
	}
	return Hive
}

func (e *entry) isView() bool {
	switch strings.ToUpper(e.tableType) {
	case "VIRTUAL_VIEW", "MATERIALIZED_VIEW", "VIEW":
		return true
	}
	return strings.EqualFold(e.Parameters["presto_view"], "true") || e.provider() == "view" ||
		strings.EqualFold(e.Parameters["table_type"], "view")
}

// lakeFormat finds a format with a log of its own in a provider's or
// table_type's name, the class of a Spark data source included.
func lakeFormat(name string) Kind {
	switch {
	case name == "delta", strings.HasPrefix(name, "io.delta.sql"), name == "com.databricks.sql.transaction.tahoe":
		return Delta
	case name == "iceberg", strings.HasPrefix(name, "org.apache.iceberg."):
		return Iceberg
	case name == "hudi", name == "org.apache.hudi", strings.HasPrefix(name, "org.apache.hudi."):
		return Hudi
	}
	return ""
}

func (e *entry) kindByClass() Kind {
	for _, class := range []string{e.inputFormat, e.serde, e.Parameters["storage_handler"]} {
		switch {
		case strings.HasPrefix(class, "org.apache.hudi."), strings.HasPrefix(class, "com.uber.hoodie."):
			return Hudi
		case strings.HasPrefix(class, "org.apache.iceberg."):
			return Iceberg
		case strings.HasPrefix(class, "io.delta.hive."):
			return Delta
		}
	}
	return ""
}

// settleLocation: rules 3 and 4.
func (e *entry) settleLocation() error {
	if path := e.serdeParams["path"]; path != "" {
		e.Location = path
	}
	if e.Location == "" {
		return errors.New("storage_descriptor.location is missing")
	}
	if strings.HasSuffix(e.Location, placeholderTail) {
		return fmt.Errorf("storage_descriptor.location is only a placeholder (%.300q) and serde_info has no path", e.Location)
	}
	return nil
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
