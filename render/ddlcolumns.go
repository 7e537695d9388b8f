package render

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// ddlColumn is a line of the statement's columns.
type ddlColumn struct {
	table.Column

	typ  string // Athena's; "": the column is left out
	note string // why the type is another than the table's; "": it is not
}

// columns maps the table's columns, less its keys, and the keys. byPosition says that
// the files have columns by their place, so that none can be left out; asText that
// any of them can be read as text.
func (d *ddl) columns(byPosition, asText bool) error {
	seen := make(map[string]bool)
	keys := make(map[string]bool)
	for _, k := range d.t.Keys {
		keys[strings.ToLower(k.Name)] = true
		c, err := d.column(k, true, true, seen)
		if err == nil && !scalar(k.Type) {
			err = d.fail(k.Name, fmt.Sprintf("type %.100q: a partition key is a single value, which a directory's name can be", k.Type), "")
		}
		if err != nil {
			return err
		}
		d.keys = append(d.keys, c)
	}
	kept := 0
	for _, c := range d.t.Columns {
		if keys[strings.ToLower(c.Name)] {
			if err := d.leaveOut(c, byPosition || asText); err != nil {
				return err
			}
			continue
		}
		column, err := d.column(c, byPosition, asText, seen)
		if err != nil {
			return err
		}
		d.data = append(d.data, column)
		if column.typ != "" {
			kept++
		}
	}
	if kept == 0 {
		return d.fail("", "no column is known that Athena has a type for", "the files tell their own: see .lakefs/footer beside them")
	}
	return nil
}

// leaveOut leaves out a column that is named as a partition key, for the directory's value
// is the one that counts (rule 35). Athena takes no table that has both. placed says that
// the files have columns by their place.
func (d *ddl) leaveOut(c table.Column, placed bool) error {
	switch {
	case d.keysAmongColumns():
	case placed:
		return d.fail(c.Name, "it is named as a partition key is, and Athena takes no such table", "nor can it be left out, where the files have columns by their place")
	default:
		d.data = append(d.data, ddlColumn{Column: c, note: shown(c.Type) + " is left out: a partition key has its name, and the directory's value counts"})
	}
	return nil
}

// keysAmongColumns says that the table's columns are those of its files and its keys.
func (d *ddl) keysAmongColumns() bool {
	if d.t.Kind == table.FormatTable {
		return true
	}
	_, whole := d.t.Parameters["spark.sql.sources.schema"]
	_, parts := d.t.Parameters[sparkSchema+"numParts"]
	return d.t.DataSource() != "" && (whole || parts)
}

// scalar says that a type's values are single ones that have a text.
func scalar(text string) bool {
	typ, err := table.ParseType(text)
	if err != nil {
		return false
	}
	switch typ.Kind {
	case table.TypeArray, table.TypeMap, table.TypeStruct, table.TypeUnion, table.TypeVariant, table.TypeBinary:
		return false
	}
	return true
}

func (d *ddl) column(c table.Column, byPosition, asText bool, seen map[string]bool) (ddlColumn, error) {
	out := ddlColumn{Column: c}
	lower := strings.ToLower(c.Name)
	if seen[lower] {
		return out, d.fail(c.Name, "there are two of that name, and Athena knows no case", "")
	}
	seen[lower] = true
	typ, err := table.ParseType(c.Type)
	if err != nil {
		return out, d.fail(c.Name, err.Error(), "")
	}
	name, why := unspellable(c.Name), noEqual(typ)
	switch {
	case name == "" && why == "":
		out.typ, out.note = athenaType(typ), typeNote(typ)
	case name == "" && asText:
		out.typ, out.note = "string", fmt.Sprintf("%s, here its text: %s", shown(c.Type), why)
	case byPosition || asText:
		why = cmp.Or(name, fmt.Sprintf("type %.100q: %s", c.Type, why))
		return out, d.fail(c.Name, why, "nor can it be left out, where the directories or the files have columns by their place")
	default:
		out.note = fmt.Sprintf("%s is left out: %s", shown(c.Type), cmp.Or(name, why))
	}
	return out, nil
}

// unspellable says why no statement can name a column so; "": it can.
func unspellable(name string) string {
	switch {
	case controls(name):
		return "its name has control characters"
	case strings.ContainsAny(name, ".:"):
		return "a column's name has no . and no : in Hive's language"
	}
	return ""
}

// plainField says that a field's name can stand in the text of a type, which is how the
// catalog keeps it: without quotes.
func plainField(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_. $", r)
	})
}

// noEqual says why Athena has no such type; "": it has.
func noEqual(t table.Type) string {
	switch t.Kind {
	case table.TypeTime, table.TypeInterval, table.TypeVoid, table.TypeVariant, table.TypeUnion:
		return fmt.Sprintf("Athena's tables have no %s", t.Kind)
	case table.TypeStruct:
		if len(t.Fields) == 0 {
			return "Athena has no struct without fields"
		}
	case table.TypeMap:
		switch key := t.Fields[0].Type.Kind; key {
		case table.TypeArray, table.TypeMap, table.TypeStruct, table.TypeUnion:
			return fmt.Sprintf("the keys of a map are single values in Athena, not of type %s", key)
		}
	}
	for _, f := range t.Fields {
		if t.Kind == table.TypeStruct && !plainField(f.Name) {
			return fmt.Sprintf("the name of its field %s breaks the text of a type", shown(f.Name))
		}
		if why := noEqual(f.Type); why != "" {
			return why
		}
	}
	return ""
}

// typeNote says what a type loses; "": nothing.
func typeNote(t table.Type) string {
	switch t.Kind {
	case table.TypeTimestampLocal:
		return "timestamp_ntz, which Athena's timestamp is: of no zone"
	case table.TypeTimestampZoned:
		return "a point in time, which Athena shows in UTC"
	case table.TypeVarchar, table.TypeChar:
		if athenaType(t) == "string" {
			return fmt.Sprintf("%s(%d), longer than Athena has", t.Kind, t.Size)
		}
	}
	for _, f := range t.Fields {
		if note := typeNote(f.Type); note != "" {
			return note
		}
	}
	return ""
}

// athenaType spells a type that Athena has an equal of. Names of fields are quoted, for
// they may be words of the language.
func athenaType(t table.Type) string {
	switch t.Kind {
	case table.TypeTimestamp, table.TypeTimestampLocal, table.TypeTimestampZoned:
		return "timestamp"
	case table.TypeVarchar:
		if t.Size > 65535 {
			return "string"
		}
	case table.TypeChar:
		if t.Size > 255 {
			return "string"
		}
	case table.TypeArray, table.TypeMap, table.TypeStruct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			if t.Kind == table.TypeStruct {
				parts[i] = sqlName(f.Name) + ":"
			}
			parts[i] += athenaType(f.Type)
		}
		return string(t.Kind) + "<" + strings.Join(parts, ",") + ">"
	}
	return t.String()
}

// writeColumns writes the list in its parentheses.
func writeColumns(b *strings.Builder, columns []ddlColumn) {
	last := -1
	for i, c := range columns {
		if c.typ != "" {
			last = i
		}
	}
	b.WriteString(" (\n")
	for i, c := range columns {
		if c.typ == "" {
			fmt.Fprintf(b, "  -- %s %s\n", shown(c.Name), c.note)
			continue
		}
		fmt.Fprintf(b, "  %s %s", sqlName(c.Name), c.typ)
		if c.Comment != "" {
			b.WriteString(" COMMENT " + sqlText(columnComment(c.Comment)))
		}
		if i < last {
			b.WriteByte(',')
		}
		if c.note != "" {
			b.WriteString(" -- " + c.note)
		}
		b.WriteByte('\n')
	}
	b.WriteByte(')')
}
