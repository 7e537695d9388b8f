package gluetest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// Call is a request as it arrived. It is to be read only.
type Call struct {
	Op       string         // "GetPartitions"
	Catalog  string         // account id; the server's own where the request names none
	Database string         // of the request, or the name of the database itself
	Table    string         // of the request, or the name of the table itself; "" for databases
	Input    map[string]any // what the request's body says; numbers are json.Number

	fields    object
	malformed error // of the body
}

// newCall reads a request's body.
func newCall(op string, body []byte) *Call {
	c := &Call{Op: op, Catalog: Account}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if c.malformed = dec.Decode(&c.Input); c.malformed != nil {
		return c
	}
	if c.fields, c.malformed = parse(body); c.malformed != nil {
		return c
	}
	if id := c.text("CatalogId"); id != "" {
		c.Catalog = id
	}
	c.Database, c.Table = c.text("DatabaseName"), c.text("TableName")
	switch op {
	case "GetDatabase", "DeleteDatabase":
		c.Database = c.text("Name")
	case "CreateDatabase":
		c.Database = c.nested("DatabaseInput")
	case "GetTable", "DeleteTable":
		c.Table = c.text("Name")
	case "CreateTable", "UpdateTable":
		c.Table = c.nested("TableInput")
	}
	return c
}

// serialization is what AWS answers to JSON that is not what it should be.
func serialization(err error) error { return fail("SerializationException", "%v", err) }

func (c *Call) names() names { return names{c.Catalog, c.Database, c.Table} }

func (c *Call) text(field string) string { return c.fields.text(field) }

func (c *Call) flag(field string) bool { return string(c.fields.get(field)) == "true" }

// nested is the Name within a field.
func (c *Call) nested(field string) string {
	o, err := parse(c.fields.get(field))
	if err != nil {
		return ""
	}
	return o.text("Name")
}

// entry is a field that is an object.
func (c *Call) entry(field string) (object, error) {
	raw := c.fields.get(field)
	if raw == nil {
		return nil, refused(field, "Member must not be null")
	}
	o, err := parse(raw)
	if err != nil {
		return nil, serialization(err)
	}
	return o, nil
}

// strings is a field that is a list of strings.
func (c *Call) strings(field string) ([]string, error) {
	raw := c.fields.get(field)
	if raw == nil {
		return nil, refused(field, "Member must not be null")
	}
	values, err := texts(raw)
	if err != nil {
		return nil, serialization(err)
	}
	return values, nil
}

// list is a field that is a list of so many objects.
func (c *Call) list(field string, limit int) ([]object, error) {
	raw := c.fields.get(field)
	if raw == nil {
		return nil, refused(field, "Member must not be null")
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, serialization(err)
	}
	if len(items) > limit {
		return nil, refused(field, fmt.Sprintf("Member must have length less than or equal to %d", limit))
	}
	objects := make([]object, len(items))
	for i, item := range items {
		var err error
		if objects[i], err = parse(item); err != nil {
			return nil, serialization(err)
		}
	}
	return objects, nil
}

func texts(raw json.RawMessage) ([]string, error) {
	var values []string
	if raw == nil {
		return values, nil
	}
	return values, json.Unmarshal(raw, &values)
}

// pageSize is MaxResults, or what the server takes for it.
func (c *Call) pageSize(limit int) (int, error) {
	raw := c.fields.get("MaxResults")
	if raw == nil {
		return limit, nil
	}
	var n int
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, serialization(err)
	}
	if n < 1 || n > limit {
		return 0, refused("maxResults", fmt.Sprintf("Member must have value between 1 and %d", limit))
	}
	return n, nil
}

// segment is a part of a table's partitions; the zero segment of one is all.
type segment struct{ Number, Total int64 }

func (c *Call) segment() (segment, error) {
	raw := c.fields.get("Segment")
	if raw == nil {
		return segment{0, 1}, nil
	}
	var in struct{ SegmentNumber, TotalSegments int64 }
	if err := json.Unmarshal(raw, &in); err != nil {
		return segment{}, serialization(err)
	}
	switch {
	case in.TotalSegments < 1 || in.TotalSegments > segments:
		return segment{}, refused("segment.totalSegments", fmt.Sprintf("Member must have value between 1 and %d", segments))
	case in.SegmentNumber < 0 || in.SegmentNumber >= in.TotalSegments:
		return segment{}, invalid("Segment number %d is not below the number of segments %d", in.SegmentNumber, in.TotalSegments)
	}
	return segment{in.SegmentNumber, in.TotalSegments}, nil
}

// token is where a listing of an operation goes on: behind this. Tokens are of
// one operation, and those of partitions of one segment.
func token(op, after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(op + " " + after))
}

// after is what a call's token says; "" without one.
func (c *Call) after() (string, error) {
	t := c.text("NextToken")
	if t == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(t)
	after, ok := strings.CutPrefix(string(raw), c.Op+" ")
	if err != nil || !ok {
		return "", errToken()
	}
	return after, nil
}

func errToken() error { return invalid("The NextToken is not one of this listing.") }

func partitionToken(s segment, last int64) string {
	return token("GetPartitions", fmt.Sprintf("%d %d %d", s.Number, s.Total, last))
}

// partitionToken is the seq of the last partition that was answered.
func (c *Call) partitionToken(want segment) (int64, error) {
	after, err := c.after()
	if err != nil || after == "" {
		return 0, err
	}
	var s segment
	var last int64
	if _, err := fmt.Sscanf(after, "%d %d %d", &s.Number, &s.Total, &last); err != nil {
		return 0, errToken() // the text says no more
	}
	if s != want {
		return 0, errToken()
	}
	return last, nil
}

// here is the token of where the call itself begins.
func (c *Call) here() string {
	if t := c.text("NextToken"); t != "" {
		return t
	}
	if c.Op != "GetPartitions" {
		return token(c.Op, "")
	}
	seg, err := c.segment()
	if err != nil {
		seg = segment{0, 1}
	}
	return partitionToken(seg, 0)
}
