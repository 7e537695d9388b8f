package render

// kind is what the values of a column of a file are.
type kind uint8

const (
	unknown   kind = iota // why is in fileType.why
	boolean               //
	integer               // bits 8 to 64, signed or not
	float                 // bits 16, 32 or 64
	decimal               // precision, scale
	text                  // declared as UTF-8: STRING, ENUM, JSON
	octets                // not declared as text; size > 0: of a fixed length
	uuid                  //
	date                  //
	timeOfDay             // unit, utc
	timestamp             // unit, utc
	interval              // months, days and a time
	record                // fields
	list                  // fields[0] is the element
	mapping               // fields[0] is the key, fields[1] the value
	union                 // fields are the branches; a value is shown as its branch's
	nothing               // NULL in each row
)

// unit is how many digits a fraction of a second has.
type unit uint8

const (
	seconds unit = 0
	millis  unit = 3
	micros  unit = 6
	nanos   unit = 9
)

// fileType is the type of a column of a file, as its writer declared it.
type fileType struct {
	kind      kind
	bits      int  // of integer and float
	unsigned  bool // of integer
	precision int  // of decimal
	scale     int  // of decimal
	unit      unit // of timeOfDay and timestamp
	utc       bool // of timestamp: an instant; false: a local time
	int96     bool // of timestamp: Spark's and Impala's, of which no file tells whether it is an instant
	size      int  // of octets: their length; 0: any
	json      bool // of text: its values are JSON documents (shown as text all the same)
	enum      bool // of text
	nullable  bool
	declared  string  // the type in the file's own words, for messages: "INT32 (DECIMAL(9,2))"
	why       string  // of unknown: why its values are not shown
	fields    []field // of record, list, mapping, union

	// In a copy of it, conform may change unit (shown are so many digits of a second, the
	// rest is cut off) and this:
	asText bool // of octets: shown as UTF-8, not as base64
	within int  // of integer: the bits of the table's type, if those are fewer; a value that needs more is an error
}
