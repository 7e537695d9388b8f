package render

import (
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/format"
)

// Fields are named as parquet.thrift names them, in snake_case. Those of ColumnMetaData
// are shown as fields of the column chunk that it is of.
//
//nolint:gochecknoglobals // constant tables
var (
	parquetTypes     = []string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
	parquetConverted = []string{
		"UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS", "TIMESTAMP_MILLIS",
		"TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8", "INT_16", "INT_32", "INT_64", "JSON", "BSON", "INTERVAL",
	}
	parquetRepetitions = []string{"REQUIRED", "OPTIONAL", "REPEATED", "VECTOR"}
	parquetEncodings   = []string{
		"PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY",
		"DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT",
	}
	parquetCodecs = []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}
	parquetPages  = []string{"DATA_PAGE", "INDEX_PAGE", "DICTIONARY_PAGE", "DATA_PAGE_V2"}
	parquetEdges  = []string{"SPHERICAL", "VINCENTY", "THOMAS", "ANDOYER", "KARNEY"}

	parquetUnits = []member{{id: 1, name: "MILLIS"}, {id: 2, name: "MICROS"}, {id: 3, name: "NANOS"}}
	timeLayout   = layout{
		{id: 1, typ: format.True, name: "is_adjusted_to_utc", show: func(f *footer) { f.element.utc = f.bool() }},
		{id: 2, typ: format.Struct, name: "unit", show: func(f *footer) { f.element.unit = f.unionName(parquetUnits) }},
	}
	parquetLogical = []member{
		{id: 1, name: "STRING"},
		{id: 2, name: "MAP"},
		{id: 3, name: "LIST"},
		{id: 4, name: "ENUM"},
		{id: 5, name: "DECIMAL", of: layout{precisionSlot(2), scaleSlot(1)}},
		{id: 6, name: "DATE"},
		{id: 7, name: "TIME", of: timeLayout},
		{id: 8, name: "TIMESTAMP", of: timeLayout},
		{id: 10, name: "INTEGER", of: layout{
			int8Slot(1, "bit_width", func(f *footer, n int8) { f.element.bits = n }),
			{id: 2, typ: format.True, name: "is_signed", show: func(f *footer) { f.element.signed = f.bool() }},
		}},
		{id: 11, name: "UNKNOWN"},
		{id: 12, name: "JSON"},
		{id: 13, name: "BSON"},
		{id: 14, name: "UUID"},
		{id: 15, name: "FLOAT16"},
		{id: 16, name: "VARIANT", of: layout{int8Slot(1, "specification_version", func(*footer, int8) {})}},
		{id: 17, name: "GEOMETRY", of: layout{textSlot(1, "crs")}},
		{id: 18, name: "GEOGRAPHY", of: layout{textSlot(1, "crs"), enumSlot(2, "algorithm", parquetEdges)}},
		{id: 19, name: "VECTOR"},
	}

	elementLayout = layout{
		{id: 4, typ: format.Binary, name: "name", show: func(f *footer) {
			f.text()
			f.name, f.named = append(f.name[:0], f.bytes...), true
		}},
		enumSlot(3, "repetition_type", parquetRepetitions),
		{id: 1, typ: format.I64, name: "type", show: func(f *footer) { f.element.physical = f.enum(parquetTypes) }},
		{id: 2, typ: format.I64, name: "type_length", show: func(f *footer) { f.element.length = f.int() }},
		{id: 10, typ: format.Struct, name: "logical_type", show: func(f *footer) { f.element.logical = f.union(parquetLogical) }},
		{id: 6, typ: format.I64, name: "converted_type", show: func(f *footer) { f.element.converted = f.enum(parquetConverted) }},
		precisionSlot(8), scaleSlot(7), intSlot(9, "field_id"), intSlot(11, "vector_length"),
		{id: 5, typ: format.I64, show: func(f *footer) { f.children = f.Int() }},
	}

	keyValueLayout = layout{textSlot(1, "key"), {id: 2, typ: format.Binary, name: "value", show: func(f *footer) {
		if n := f.text(); n > footerText {
			f.out = fmt.Appendf(f.out, `, "value_length": %d`, n)
		}
	}}}

	statisticsLayout = layout{
		{id: 6, typ: format.Binary, name: "min_value", show: (*footer).value},
		{id: 5, typ: format.Binary, name: "max_value", show: (*footer).value},
		{id: 2, typ: format.Binary, name: "min", show: (*footer).value, unless: 6},
		{id: 1, typ: format.Binary, name: "max", show: (*footer).value, unless: 5},
		boolSlot(8, "is_min_value_exact"), boolSlot(7, "is_max_value_exact"),
		intSlot(3, "null_count"), intSlot(4, "distinct_count"), intSlot(9, "nan_count"),
	}
	sizeLayout = layout{
		intSlot(1, "unencoded_byte_array_data_bytes"),
		listSlot(2, "repetition_level_histogram", intSlot(0, "")), listSlot(3, "definition_level_histogram", intSlot(0, "")),
	}
	geoLayout = layout{
		structSlot(1, "bbox", layout{
			doubleSlot(1, "xmin"), doubleSlot(2, "xmax"), doubleSlot(3, "ymin"), doubleSlot(4, "ymax"),
			doubleSlot(5, "zmin"), doubleSlot(6, "zmax"), doubleSlot(7, "mmin"), doubleSlot(8, "mmax"),
		}),
		listSlot(2, "geospatial_types", intSlot(0, "")),
	}

	metaLayout = layout{
		pathSlot(3), enumSlot(1, "type", parquetTypes), enumSlot(4, "codec", parquetCodecs), listSlot(2, "encodings", enumSlot(0, "", parquetEncodings)),
		intSlot(5, "num_values"), intSlot(7, "total_compressed_size"), intSlot(6, "total_uncompressed_size"),
		intSlot(11, "dictionary_page_offset"), intSlot(9, "data_page_offset"), intSlot(10, "index_page_offset"),
		intSlot(14, "bloom_filter_offset"), intSlot(15, "bloom_filter_length"),
		structSlot(12, "statistics", statisticsLayout), structSlot(16, "size_statistics", sizeLayout), structSlot(17, "geospatial_statistics", geoLayout),
		listSlot(13, "encoding_stats", structSlot(0, "", layout{enumSlot(1, "page_type", parquetPages), enumSlot(2, "encoding", parquetEncodings), intSlot(3, "count")})),
		listSlot(8, "key_value_metadata", structSlot(0, "", keyValueLayout)),
	}
	chunkLayout = layout{
		{id: 3, typ: format.Struct, show: func(f *footer) { f.members(metaLayout) }},
		textSlot(1, "file_path"), intSlot(2, "file_offset"),
		intSlot(6, "column_index_offset"), intSlot(7, "column_index_length"), intSlot(4, "offset_index_offset"), intSlot(5, "offset_index_length"),
		unionSlot(8, "crypto_metadata", []member{
			{id: 1, name: "ENCRYPTION_WITH_FOOTER_KEY"},
			{id: 2, name: "ENCRYPTION_WITH_COLUMN_KEY", of: layout{pathSlot(1), bytesSlot(2, "key_metadata")}},
		}),
		{id: 9, typ: format.Binary, name: "encrypted_column_metadata_length", show: func(f *footer) {
			var n uint64
			f.bytes, n = f.Binary(f.bytes[:0], 0)
			f.out = appendUint(f.out, n)
		}},
	}
	groupLayout = layout{
		intSlot(3, "num_rows"), intSlot(2, "total_byte_size"), intSlot(6, "total_compressed_size"), intSlot(5, "file_offset"), intSlot(7, "ordinal"),
		listSlot(4, "sorting_columns", structSlot(0, "", layout{intSlot(1, "column_idx"), boolSlot(2, "descending"), boolSlot(3, "nulls_first")})),
	}

	aesLayout        = layout{bytesSlot(1, "aad_prefix"), bytesSlot(2, "aad_file_unique"), boolSlot(3, "supply_aad_prefix")}
	parquetCiphers   = []member{{id: 1, name: "AES_GCM_V1", of: aesLayout}, {id: 2, name: "AES_GCM_CTR_V1", of: aesLayout}}
	cryptoLayout     = layout{unionSlot(1, "encryption_algorithm", parquetCiphers), bytesSlot(2, "key_metadata")}
	encryptionLayout = layout{unionSlot(8, "encryption_algorithm", parquetCiphers), bytesSlot(9, "footer_signing_key_metadata")}

	headLayout    = layout{intSlot(1, "version"), textSlot(6, "created_by"), intSlot(3, "num_rows")}
	keyValueSlot  = slot{id: 5, typ: format.List, name: "key_value_metadata"}
	ordersSlot    = listSlot(7, "column_orders", slot{typ: format.Struct, show: func(f *footer) { f.unionName(parquetOrders) }})
	parquetOrders = []member{{id: 1, name: "TYPE_ORDER"}, {id: 2, name: "IEEE_754_TOTAL_ORDER"}, {id: 3, name: "INT96_TIMESTAMP_ORDER"}}
)
