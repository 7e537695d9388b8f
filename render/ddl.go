package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// SchemaSQL returns the statement that makes t in Athena, with the table's location; an
// [*Error] where there is none. What the statement cannot say, comments say. It ends in
// a semicolon and a newline.
//
// A Delta table has no columns in it, as Athena wants: its log has them. An Iceberg
// table cannot be made of what is there by any statement: the one for it makes a new
// one, and has no location that would be taken.
//
// Names and texts of the entry are untrusted: none of them ends its quotes or its
// comment, by Hive's rules of reading.
func SchemaSQL(t *table.Table) (string, error) {
	own := *t
	d := &ddl{t: &own}
	if controls(t.Database) || controls(t.Name) {
		return "", d.fail("", "the name has control characters, which no statement can spell", "")
	}
	switch t.Kind {
	case table.Delta:
		return d.delta()
	case table.Iceberg:
		return d.iceberg()
	case table.Hudi, table.FormatTable, table.Hive:
		return d.external()
	}
	return "", d.fail("", "it has no schema of files: "+t.Reason, "")
}

// ddl is a statement in the making.
type ddl struct {
	t          *table.Table // a copy of its own
	notes      []string     // lines of comment above it
	data, keys []ddlColumn
	storage    storage
	properties map[string]string // TBLPROPERTIES
}

// fail is the error of a table of which there is no statement.
func (d *ddl) fail(column, reason, remedy string) error {
	return &Error{File: d.t.Database + "." + d.t.Name, Column: column, Reason: "no schema.sql: " + reason, Remedy: remedy}
}

func (d *ddl) notef(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// external makes the statement of a table whose files are listed.
func (d *ddl) external() (string, error) {
	d.properties = ownProperties(d.t.Parameters)
	if err := d.settleStorage(); err != nil {
		return "", err
	}
	if err := d.columns(d.storage.byPosition, d.storage.asText); err != nil {
		return "", err
	}
	d.noteTable()
	var b strings.Builder
	d.begin(&b, "CREATE EXTERNAL TABLE")
	writeColumns(&b, d.data)
	if comment := cmp.Or(d.t.Description, d.t.Parameters["comment"]); comment != "" {
		b.WriteString("\nCOMMENT " + sqlText(cutText(comment, maxTableComment)))
	}
	if len(d.keys) > 0 {
		b.WriteString("\nPARTITIONED BY")
		writeColumns(&b, d.keys)
	}
	d.writeBuckets(&b)
	d.storage.write(&b)
	b.WriteString("\nLOCATION " + sqlText(d.location()))
	d.end(&b)
	return b.String(), nil
}

// begin writes the notes and the statement up to its columns.
func (d *ddl) begin(b *strings.Builder, verb string) {
	for _, n := range d.notes {
		b.WriteString("-- " + n + "\n")
	}
	fmt.Fprintf(b, "%s %s.%s", verb, sqlName(d.t.Database), sqlName(d.t.Name))
}

// end writes the properties and ends the statement.
func (d *ddl) end(b *strings.Builder) {
	if len(d.properties) > 0 {
		b.WriteString("\nTBLPROPERTIES ")
		writeProperties(b, d.properties)
	}
	b.WriteString(";\n")
}

// location is the table's as Athena spells it.
func (d *ddl) location() string {
	scheme, rest, ok := strings.Cut(d.t.Location, "://")
	if ok {
		switch strings.ToLower(scheme) {
		case "s3", "s3a", "s3n":
			return "s3://" + rest
		}
	}
	return d.t.Location
}

// noteTable says what the statement cannot.
func (d *ddl) noteTable() {
	t := d.t
	if !strings.HasPrefix(d.location(), "s3://") {
		d.notef("Athena reads from S3 alone: copy the files there, and name that place.")
	}
	if t.Kind == table.Hudi && !hudiClass(t.InputFormat) {
		d.notef("This is for a Hudi table of the kind copy on write. One of the kind merge on read has")
		d.notef("the input format org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat.")
	}
	if strings.EqualFold(t.Parameters["transactional"], "true") {
		d.notef("Athena does not read tables of Hive's transactions.")
	}
	if len(t.Storage.SkewedColumns) > 0 {
		d.notef("Athena's tables have no skew: values of %s have directories of their own.", shownAll(t.Storage.SkewedColumns))
	}
	switch n := t.Parameters[sparkSchema+"numBuckets"]; {
	case n != "" && n != "0":
		d.notef("Bucketed by Spark, whose hash is not Hive's: no bucketing for Athena.")
	case t.Storage.Buckets > 0 && !d.bucketed():
		d.notef("Bucketed by %s, of which not all are columns here: no bucketing for Athena.", shownAll(t.Storage.BucketColumns))
	}
	d.notePartitions()
}

func (d *ddl) notePartitions() {
	t := d.t
	switch {
	case len(d.keys) == 0 || t.Projection != nil:
		return
	case t.PathOnlyValue:
		d.notef("Directories are values without KEY=: add each partition by ALTER TABLE … ADD PARTITION … LOCATION.")
		return
	}
	if t.Kind == table.FormatTable && t.LegacyDate {
		for _, k := range d.keys {
			if k.typ == "date" {
				d.notef("Directories of %s are days since 1970, which Athena does not read as dates.", shown(k.Name))
			}
		}
	}
	d.notef("Partitions are added by MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION.")
}

// bucketed says that rows go to files by the hash of columns that the statement has.
func (d *ddl) bucketed() bool {
	s := d.t.Storage
	if s.Buckets == 0 || len(s.BucketColumns) == 0 || d.t.DataSource() != "" {
		return false
	}
	for _, name := range s.BucketColumns {
		is := func(c ddlColumn) bool { return c.typ != "" && strings.EqualFold(c.Name, name) }
		if !slices.ContainsFunc(d.data, is) {
			return false
		}
	}
	return true
}

func (d *ddl) writeBuckets(b *strings.Builder) {
	if !d.bucketed() {
		return
	}
	names := make([]string, len(d.t.Storage.BucketColumns))
	for i, c := range d.t.Storage.BucketColumns {
		names[i] = sqlName(c)
	}
	fmt.Fprintf(b, "\nCLUSTERED BY (%s) INTO %d BUCKETS", strings.Join(names, ", "), d.t.Storage.Buckets)
}

func shownAll(names []string) string {
	const most = 10
	out := make([]string, 0, most)
	for _, n := range names[:min(most, len(names))] {
		out = append(out, shown(n))
	}
	if len(names) > most {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// delta makes Athena's statement of a Delta table: its log has the columns and keys.
func (d *ddl) delta() (string, error) {
	d.notef("Athena reads the columns and partitions of a Delta table from its log.")
	if len(d.t.Columns) > 0 {
		d.notef("The catalog's entry has these:")
	}
	for _, c := range d.t.Columns {
		d.noteColumn(c)
	}
	if len(d.t.Keys) > 0 {
		d.notef("The catalog's entry has these partition keys:")
	}
	for _, k := range d.t.Keys {
		d.noteColumn(k)
	}
	if !strings.HasPrefix(d.location(), "s3://") {
		d.notef("Athena reads from S3 alone: copy the files there, and name that place.")
	}
	d.properties = map[string]string{"table_type": "DELTA"}
	var b strings.Builder
	d.begin(&b, "CREATE EXTERNAL TABLE")
	b.WriteString("\nLOCATION " + sqlText(d.location()))
	d.end(&b)
	return b.String(), nil
}

func (d *ddl) noteColumn(c table.Column) {
	d.notef("  %s %s", shown(c.Name), strings.Trim(shown(c.Type), `"`))
}

// noPlace is a location that Athena refuses.
const noPlace = "s3://AN-EMPTY-PLACE/"

// iceberg makes a statement that shows the columns. Were it to name the table's
// location, there would be two tables there, and maintenance of one would delete the
// files of the other.
func (d *ddl) iceberg() (string, error) {
	keys := d.t.Keys
	d.t.Keys = nil // what the metadata partitions by are columns like others
	if err := d.columns(false, false); err != nil {
		return "", err
	}
	d.notef("No statement makes this Iceberg table again: it is registered by its metadata, by")
	d.notef("register_table of Iceberg's catalogs.")
	d.notef("  location %s", shown(d.t.Location))
	if at := d.t.Parameters["metadata_location"]; at != "" {
		d.notef("  metadata %s", shown(at))
	}
	d.notef("This makes a new table of the same columns, without rows, once LOCATION is an empty")
	d.notef("place. How the table is partitioned is in its metadata alone.")
	if len(keys) > 0 {
		d.notef("The catalog's entry has these partition keys:")
	}
	for _, k := range keys {
		d.noteColumn(k)
	}
	d.properties = map[string]string{"table_type": "ICEBERG"}
	if f := d.t.Parameters["write.format.default"]; f != "" {
		d.properties["format"] = f
	}
	var b strings.Builder
	d.begin(&b, "CREATE TABLE")
	writeColumns(&b, d.data)
	b.WriteString("\nLOCATION " + sqlText(noPlace))
	d.end(&b)
	return b.String(), nil
}

const sparkSchema = "spark.sql.sources.schema."

// ownProperties are the parameters that belong to the table wherever it is made: not
// Spark's schema, not what an engine counted or noted of its last run.
func ownProperties(parameters map[string]string) map[string]string {
	own := maps.Clone(parameters)
	maps.DeleteFunc(own, func(k, _ string) bool { return passing(k) })
	return own
}

func passing(key string) bool {
	for _, prefix := range []string{"spark.sql.", "trino_", "presto_", "delta."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	switch strings.ToLower(key) {
	case "external", "comment", "transient_lastddltime", "last_modified_by", "last_modified_time", "bucketing_version",
		"numfiles", "numpartitions", "numrows", "rawdatasize", "totalsize", "numfileserasurecoded", "column_stats_accurate",
		"do_not_update_stats", "stats_generated", "stats_generated_via_stats_task",
		"recordcount", "averagerecordsize", "objectcount", "sizekey", "crawl_run_id", "updated_by_crawler",
		"crawlerschemaserializerversion", "crawlerschemadeserializerversion", "partition_filtering.enabled":
		return true
	}
	return false
}
