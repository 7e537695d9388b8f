package table

import "errors"

// FormatChange is what set-format is asked for (rule 59): the classes that are given;
// "" leaves what there is, or what the table has.
type FormatChange struct {
	InputFormat, OutputFormat, Serde string
	Properties                       map[string]string // of the SerDe; added to those there are
}

// ParseFormatChange reads a format as set-format takes it: one of the six keywords of
// STORED AS (TEXTFILE, SEQUENCEFILE, ORC, PARQUET, AVRO, RCFILE) or JSONFILE, in any
// case, or INPUTFORMAT 'class' OUTPUTFORMAT 'class' [SERDE 'class' [WITH
// SERDEPROPERTIES ('key'='value', …)]].
func ParseFormatChange(text string) (FormatChange, error) {
	return FormatChange{}, errors.ErrUnsupported
}
