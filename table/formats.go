package table

import "strings"

// providerFormat is the format of a Spark data source that keeps plain files.
func providerFormat(provider string) string {
	switch provider {
	case "parquet", "orc", "avro", "csv", "text", "json":
		return provider
	}
	return ""
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
	case "TextInputFormat":
		return "text"
	}
	return ""
}

// settleFormat: the provider, else the SerDe and input format (tree.md, "Kinds
// of table"). A container (sequence, RC) wins over the SerDe of its rows.
func (e *entry) settleFormat() {
	if e.Kind != Hive {
		e.Format, e.FormatFrom = lakeFiles(e.Kind), "provider"
		if e.provider() == "" {
			e.FormatFrom = "table_type"
		}
		if e.Format == "" {
			e.FormatFrom = ""
		}
		return
	}
	if p := e.provider(); p != "" {
		if e.Format = providerFormat(p); e.Format != "" {
			e.FormatFrom = "provider"
		}
		return
	}
	input := inputFormat(e.inputFormat)
	bySerde, _ := serdeFormat(e.serde)
	switch {
	case input == "sequence", input == "rc", bySerde == "" && input != "":
		e.Format, e.FormatFrom = input, "input format "+e.inputFormat
	case bySerde != "":
		e.Format, e.FormatFrom = bySerde, "serde "+e.serde
	}
	if e.Format == "text" && e.serdeParams["field.delim"] != "" {
		e.Format, e.FormatFrom = "csv", "serde "+e.serde+" with field.delim" // rule 50
	}
}

// lakeFiles is the format of a table's data files where its kind fixes it.
func lakeFiles(k Kind) string {
	if k == Delta {
		return "parquet"
	}
	return ""
}
