package table

import "strings"

// symlinkInput is the input format, in any package, of files that hold paths of the
// files with the rows.
const symlinkInput = "SymlinkTextInputFormat"

// providerFormat is the format of a Spark data source that keeps plain files.
func providerFormat(provider string) string {
	switch provider {
	case "parquet", "orc", "avro", "csv", "text", "json":
		return provider
	}
	return ""
}

// sparkSource is the short name of a data source of Spark's own that is given by its class
// or package, in lower case, as Spark takes it and its older versions wrote it; else the
// name that is given.
func sparkSource(name string) string {
	long := strings.TrimSuffix(name, ".defaultsource")
	for _, home := range []string{
		"org.apache.spark.sql.execution.datasources.v2.", "org.apache.spark.sql.execution.datasources.",
		"org.apache.spark.sql.hive.", "org.apache.spark.sql.v2.", "org.apache.spark.sql.", "com.databricks.spark.",
	} {
		rest, ok := strings.CutPrefix(long, home)
		if !ok {
			continue
		}
		short, class, _ := strings.Cut(rest, ".")
		if providerFormat(short) == "" {
			continue
		}
		switch class {
		case "", short + "fileformat", short + "datasourcev2":
			return short
		}
	}
	return name
}

// serdeFormat is the format of a SerDe class that alone decides it; "" for
// those whose input format does, and for unknown ones. known: rules 47 and 48.
func serdeFormat(class string) (format string, known bool) {
	switch class {
	case "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe":
		return "", true
	case "org.apache.hadoop.hive.serde2.OpenCSVSerde":
		return "csv", true
	case "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe":
		return "parquet", true
	case "org.openx.data.jsonserde.JsonSerDe", "org.apache.hive.hcatalog.data.JsonSerDe":
		return "json", true
	case "org.apache.hadoop.hive.ql.io.orc.OrcSerde":
		return "orc", true
	case "org.apache.hadoop.hive.serde2.avro.AvroSerDe":
		return "avro", true
	case "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe",
		"org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe":
		return "rc", true
	}
	return "", false
}

// inputFormat is the format of the files that an input format class reads.
func inputFormat(class string) string {
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "MapredParquetInputFormat":
		return "parquet"
	case "OrcInputFormat":
		return "orc"
	case "AvroContainerInputFormat":
		return "avro"
	case "SequenceFileInputFormat":
		return "sequence"
	case "RCFileInputFormat":
		return "rc"
	case "TextInputFormat", symlinkInput:
		return "text"
	}
	return ""
}

// settleFormat: the provider, else the SerDe and input format (tree.md, "Kinds
// of table"). kindFrom is what told the kind.
func (e *entry) settleFormat(kindFrom string) {
	if e.Kind != Hive {
		if e.Format = lakeFiles(e.Kind); e.Format != "" {
			e.FormatFrom = kindFrom
		}
		return
	}
	if p := e.provider(); p != "" {
		if e.Format = providerFormat(p); e.Format != "" {
			e.FormatFrom = "provider"
		}
		e.LooseJSON = e.Format == "json" && (looseJSON(e.Storage.SerdeProperties) || looseJSON(e.Parameters))
		return
	}
	e.Format, e.FormatFrom = e.dialect.classFormat(e.Serde, e.InputFormat, e.Storage.SerdeProperties["field.delim"] != "")
}

// looseJSON tells whether options of Spark's JSON source, whose names are compared
// without case, let a file be other than an object of JSON on each line.
func looseJSON(options map[string]string) bool {
	for name, value := range options {
		switch strings.ToLower(name) {
		case "multiline", "wholefile", "allowcomments", "allowunquotedfieldnames":
			if strings.EqualFold(value, "true") {
				return true
			}
		case "encoding", "charset":
			if value != "" && !strings.EqualFold(value, "utf-8") && !strings.EqualFold(value, "utf8") {
				return true
			}
		case "linesep":
			if value != "" && value != "\n" && value != "\r\n" && value != "\r" {
				return true
			}
		}
	}
	return false
}

// KnownSerde says that a SerDe class is one that this program knows the rows of, by
// rules 47 and 48; none at all is not unknown.
func KnownSerde(class string) bool { return !unknownSerde(class) }

// unknownSerde: a class that is in neither rule 47 nor 48; none at all is not unknown.
func unknownSerde(class string) bool {
	_, known := serdeFormat(class)
	return !known && class != ""
}

// classFormat is the format of files by the classes that read them, and which class
// told. A container (sequence, RC) and a list of paths win over the SerDe of the
// rows. delimited: there is a field.delim (rule 50).
func (d dialect) classFormat(serde, input string, delimited bool) (format, from string) {
	if unknownSerde(serde) && !d.formatOfUnknownSerde() {
		return "", ""
	}
	byInput := inputFormat(input)
	bySerde, _ := serdeFormat(serde)
	switch {
	case byInput == "sequence", byInput == "rc", symlink(input), bySerde == "" && byInput != "":
		format, from = byInput, "input format "+input
	case bySerde != "":
		format, from = bySerde, "serde "+serde
	}
	if format == "text" && delimited && !symlink(input) {
		return "csv", "serde " + serde + " with field.delim"
	}
	return format, from
}

// symlink says that an input format's files are lists of paths.
func symlink(input string) bool { return strings.HasSuffix(input, "."+symlinkInput) }

// lakeFiles is the format of a table's data files where its kind fixes it.
func lakeFiles(k Kind) string {
	if k == Delta {
		return "parquet"
	}
	return ""
}
