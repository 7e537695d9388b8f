package warehouse

import (
	"bytes"
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// classes are the Hadoop classes that a manifest names for one format.
type classes struct {
	input, output, serde string
	properties           map[string]string
}

// format gives the classes that Hive and Athena record for t.Format.
func (t Table) format() (classes, error) {
	const hive, text = "org.apache.hadoop.hive.", "org.apache.hadoop.mapred.TextInputFormat"
	const textOut, lazy = hive + "ql.io.HiveIgnoreKeyTextOutputFormat", hive + "serde2.lazy.LazySimpleSerDe"
	switch t.Format {
	case "", "parquet":
		const p = hive + "ql.io.parquet."
		return classes{p + "MapredParquetInputFormat", p + "MapredParquetOutputFormat", p + "serde.ParquetHiveSerDe", nil}, nil
	case "csv":
		return classes{text, textOut, lazy, map[string]string{"field.delim": ",", "serialization.format": ","}}, nil
	case "text":
		return classes{text, textOut, lazy, nil}, nil
	case "json":
		return classes{text, textOut, "org.openx.data.jsonserde.JsonSerDe", nil}, nil
	case "orc":
		const p = hive + "ql.io.orc."
		return classes{p + "OrcInputFormat", p + "OrcOutputFormat", p + "OrcSerde", nil}, nil
	case "avro":
		const p = hive + "ql.io.avro."
		return classes{p + "AvroContainerInputFormat", p + "AvroContainerOutputFormat", hive + "serde2.avro.AvroSerDe", nil}, nil
	case "sequence":
		return classes{"org.apache.hadoop.mapred.SequenceFileInputFormat", hive + "ql.io.HiveSequenceFileOutputFormat", lazy, nil}, nil
	case "rc":
		return classes{hive + "ql.io.RCFileInputFormat", hive + "ql.io.RCFileOutputFormat", hive + "serde2.columnar.LazyBinaryColumnarSerDe", nil}, nil
	}
	return classes{}, fmt.Errorf("unknown format %q", t.Format)
}

// Parquet is a whole Parquet file with the rows, whose type is a struct as
// parquet-go reads it. The same rows give the same bytes.
func Parquet[T any](rows []T) (string, error) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		return "", fmt.Errorf("write Parquet rows: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("close Parquet file: %w", err)
	}
	return b.String(), nil
}
