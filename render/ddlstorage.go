package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// Classes that have a form of their own in the statement, or none by a keyword.
const (
	lazySerde     = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
	openxSerde    = "org.openx.data.jsonserde.JsonSerDe"
	parquetSerde  = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
	parquetOutput = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
	hudiInput     = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
	textOutput    = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
)

// storage is how the statement says what the files are. Either delimited, serde or
// neither; keyword, or input and output.
type storage struct {
	delimited     []string // clauses of ROW FORMAT DELIMITED, in their order
	serde         string
	properties    map[string]string // of serde
	keyword       string            // of STORED AS
	input, output string

	byPosition bool // files have columns by their place, not by name
	asText     bool // any column may be read as text
}

func (s *storage) write(b *strings.Builder) {
	if len(s.delimited) > 0 {
		b.WriteString("\nROW FORMAT DELIMITED")
		for _, clause := range s.delimited {
			b.WriteString("\n  " + clause)
		}
	}
	if s.serde != "" {
		b.WriteString("\nROW FORMAT SERDE " + sqlText(s.serde))
	}
	if len(s.properties) > 0 {
		b.WriteString("\nWITH SERDEPROPERTIES ")
		writeProperties(b, s.properties)
	}
	if s.keyword != "" {
		b.WriteString("\nSTORED AS " + s.keyword)
		return
	}
	fmt.Fprintf(b, "\nSTORED AS INPUTFORMAT %s\n  OUTPUTFORMAT %s", sqlText(s.input), sqlText(s.output))
}

// settleStorage says what the files are: by the data source or the format of a format
// table, else by the classes of the entry.
func (d *ddl) settleStorage() error {
	t := d.t
	switch {
	case t.Kind == table.Hudi:
		d.storage = storage{serde: parquetSerde, input: hudiInput, output: parquetOutput}
		if hudiClass(t.InputFormat) {
			d.storage.input = t.InputFormat
		}
		return nil
	case t.Kind == table.FormatTable || t.DataSource() != "":
		return d.sourceStorage()
	case t.Parameters["storage_handler"] != "":
		return d.fail("", fmt.Sprintf("STORED BY %.200q is nothing that Athena has", t.Parameters["storage_handler"]), "")
	case !table.KnownSerde(t.Serde):
		return d.fail("", fmt.Sprintf("SerDe class %.200q is not known", t.Serde), "the entry names it: see .lakefs/entry.json")
	}
	return d.classStorage()
}

func hudiClass(class string) bool {
	return strings.HasPrefix(class, "org.apache.hudi.") || strings.HasPrefix(class, "com.uber.hoodie.")
}

// formatKeyword is the keyword of STORED AS for files of a format. Athena has none for
// JSON, which is text to it.
func formatKeyword(format string) string {
	switch format {
	case "parquet", "orc", "avro":
		return strings.ToUpper(format)
	case "csv", "text", "json":
		return "TEXTFILE"
	case "sequence":
		return "SEQUENCEFILE"
	case "rc":
		return "RCFILE"
	}
	return ""
}

// classStorage is that of a table whose SerDe and input format say what it is.
func (d *ddl) classStorage() error {
	t, s := d.t, &d.storage
	s.keyword = formatKeyword(t.Format)
	if s.keyword == "" && t.InputFormat == "" {
		return d.fail("", "neither a SerDe nor an input format that is known says what the files are", "set the format: lakefs-mount set-format")
	}
	classes, err := table.ParseFormatChange(s.keyword)
	if s.keyword == "" || err != nil ||
		t.InputFormat != "" && t.InputFormat != classes.InputFormat ||
		t.Storage.OutputFormat != "" && t.Storage.OutputFormat != classes.OutputFormat {
		s.keyword, s.input, s.output = "", t.InputFormat, cmp.Or(t.Storage.OutputFormat, classes.OutputFormat, textOutput)
	}
	if s.input == "" && s.keyword == "" {
		s.input = classes.InputFormat
	}
	s.readBy(t.Serde, t.Format)
	d.rowFormat(classes.Serde)
	return nil
}

// readBy says how the SerDe finds a column: by its name, as text at its place, or at its
// place. Without a SerDe the format tells.
func (s *storage) readBy(serde, format string) {
	switch cmp.Or(serde[strings.LastIndexByte(serde, '.')+1:], format) {
	case "ParquetHiveSerDe", "JsonSerDe", "AvroSerDe", "parquet", "json", "avro":
	case "LazySimpleSerDe", "OpenCSVSerde", "text", "csv":
		s.asText = true
	default:
		s.byPosition = true
	}
}

// rowFormat says how rows are read, where the keyword does not: implied is the SerDe
// that goes with it.
func (d *ddl) rowFormat(implied string) {
	s, serde := &d.storage, d.t.Serde
	properties := maps.Clone(d.t.Storage.SerdeProperties)
	delete(properties, "path")
	if properties["serialization.format"] == "1" && properties["field.delim"] == "" {
		delete(properties, "serialization.format") // what there is without it
	}
	const header = "skip.header.line.count"
	if lines, ok := properties[header]; ok { // Athena looks for it among the table's
		delete(properties, header)
		if _, has := d.properties[header]; !has {
			d.setProperty(header, lines)
		}
	}
	lazy := serde == lazySerde || serde == "" && s.keyword == "TEXTFILE"
	if lazy && delimitedOnly(properties) {
		if ends := delimiter(properties["line.delim"]); ends != "" && ends != "\n" && ends != "10" {
			d.notef("Lines end in %s by the entry (line.delim). No statement says so: Athena's end in a newline.", shown(ends))
			delete(properties, "line.delim")
		}
		s.delimited = delimitedClauses(properties)
		return
	}
	if serde == "" || serde == implied && len(properties) == 0 && s.keyword != "" {
		return
	}
	s.serde, s.properties = serde, properties
}

func (d *ddl) setProperty(key, value string) {
	if d.properties == nil {
		d.properties = make(map[string]string)
	}
	d.properties[key] = value
}

// rowClauses are the clauses of ROW FORMAT DELIMITED, in the order that the grammar has
// them, with the properties of LazySimpleSerDe that they set. The spelling of the third
// is Hive's own.
func rowClauses() []struct{ property, clause string } {
	return []struct{ property, clause string }{
		{"field.delim", "FIELDS TERMINATED BY"},
		{"escape.delim", "ESCAPED BY"},
		{"colelction.delim", "COLLECTION ITEMS TERMINATED BY"},
		{"collection.delim", "COLLECTION ITEMS TERMINATED BY"},
		{"mapkey.delim", "MAP KEYS TERMINATED BY"},
		{"line.delim", "LINES TERMINATED BY"},
		{"serialization.null.format", "NULL DEFINED AS"},
	}
}

// delimitedOnly says that ROW FORMAT DELIMITED can say all of the properties.
func delimitedOnly(properties map[string]string) bool {
	clauses := make(map[string]bool)
	for _, c := range rowClauses() {
		clauses[c.property] = true
	}
	for k, v := range properties {
		if k == "serialization.format" && (v == properties["field.delim"] || delimiter(v) == delimiter(properties["field.delim"])) {
			continue // the clause of the fields sets both
		}
		if !clauses[k] {
			return false
		}
	}
	return properties["colelction.delim"] == "" || properties["collection.delim"] == ""
}

// delimitedClauses are those of the properties. Without a delimiter it is Hive's own
// (rule 50).
func delimitedClauses(properties map[string]string) []string {
	var out []string
	for _, c := range rowClauses() {
		value, ok := properties[c.property]
		switch {
		case c.property == "field.delim":
			value = cmp.Or(value, "\x01")
		case !ok:
			continue
		}
		clause := c.clause + " "
		if c.property == "escape.delim" {
			clause = "  " + clause // of the fields
		}
		out = append(out, clause+sqlText(delimiter(value)))
	}
	return out
}

// delimiter is the character that an octal escape stands for (rule 50); else the text.
func delimiter(text string) string {
	if len(text) != 4 || text[0] != '\\' {
		return text
	}
	n := 0
	for _, c := range []byte(text[1:]) {
		if c < '0' || c > '7' {
			return text
		}
		n = n*8 + int(c-'0')
	}
	if n > 0x7f {
		return text
	}
	return string(rune(n))
}

// sourceStorage is that of a Spark data source or a format table, whose SerDe says
// nothing.
func (d *ddl) sourceStorage() error {
	s := &d.storage
	s.keyword = formatKeyword(d.t.Format)
	switch d.t.Format {
	case "":
		return d.fail("", cmp.Or(d.t.Reason, "its format is not known"), "")
	case "csv":
		s.asText = true
		return d.sparkCSV()
	case "text":
		s.asText = true
		s.delimited = delimitedClauses(nil)
		d.noteOptions(nil)
	case "json":
		s.serde = openxSerde
		d.noteOptions(nil)
		if d.t.LooseJSON {
			d.notef("Athena reads one object of JSON a line, which these options need not make.")
		}
	case "orc":
		s.byPosition = true
	}
	return nil
}

// sparkCSV says what options of Spark's CSV source mean to LazySimpleSerDe.
func (d *ddl) sparkCSV() error {
	known := []string{"sep", "delimiter", "escape", "quote", "header", "nullvalue"}
	options := make(map[string]string)
	for k, v := range d.t.Storage.SerdeProperties {
		options[strings.ToLower(k)] = v
	}
	text := cmp.Or(options["sep"], options["delimiter"], ",")
	separator, ok := lazyByte(sparkDelimiter(text))
	if !ok {
		return d.fail("", fmt.Sprintf("Spark's files have %.100q between fields (option sep or delimiter), where Athena takes one byte of ASCII", text), "")
	}
	properties := map[string]string{"field.delim": separator, "line.delim": "\n", "serialization.null.format": options["nullvalue"]}
	if escape, set := options["escape"]; escape != "" || !set {
		if properties["escape.delim"], ok = lazyByte(cmp.Or(escape, `\`)); !ok {
			delete(properties, "escape.delim")
			known = slices.DeleteFunc(known, func(k string) bool { return k == "escape" })
		}
	}
	d.storage.delimited = delimitedClauses(properties)
	if strings.EqualFold(options["header"], "true") {
		d.setProperty("skip.header.line.count", "1")
	}
	d.notef("Fields in quotes keep them by this row format. Where there are such, take")
	d.notef("ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde', which reads text alone.")
	d.noteOptions(known)
	return nil
}

// sparkDelimiter is what Spark makes of an option sep: two or six characters may stand for
// one.
func sparkDelimiter(text string) string {
	switch text {
	case `\t`:
		return "\t"
	case `\r`:
		return "\r"
	case `\b`:
		return "\b"
	case `\f`:
		return "\f"
	case `\"`, `\'`, `\\`:
		return text[1:]
	case `\u0000`:
		return "\x00"
	}
	return text
}

// lazyByte spells a character as LazySimpleSerDe reads it, which is a number of a byte or
// else the first character, as a byte. ok: it can be spelled.
func lazyByte(char string) (text string, ok bool) {
	switch {
	case len(char) != 1 || char[0] > 0x7f:
		return "", false
	case char[0] >= '0' && char[0] <= '9':
		return strconv.Itoa(int(char[0])), true
	}
	return char, true
}

// noteOptions names the options of a Spark data source that the statement does not say;
// known are in lower case.
func (d *ddl) noteOptions(known []string) {
	var lost []string
	for _, k := range slices.Sorted(maps.Keys(d.t.Storage.SerdeProperties)) {
		lower := strings.ToLower(k)
		switch lower {
		case "path", "serialization.format", "compression", "codec", "inferschema", "samplingratio":
			continue
		}
		if !slices.Contains(known, lower) {
			lost = append(lost, k)
		}
	}
	if len(lost) > 0 {
		d.notef("Spark's options that have no equal in Athena: %s.", shownAll(lost))
	}
}
