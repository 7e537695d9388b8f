package catalogview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

type jsonObject = map[string]any

// glueOwnFields are what an answer tells of a table and no request takes. VersionId is
// one more.
func glueOwnFields() []string {
	return []string{
		"CatalogId", "CreateTime", "CreatedBy", "DatabaseName", "IcebergTableMetadata", "IsMaterializedView",
		"IsMultiDialectView", "IsRegisteredWithLakeFormation", "RLSProperties", "Status", "UpdateTime",
	}
}

// tableInput makes a TableInput of an entry as people wrote it.
type tableInput struct {
	name    table.Ref // what the table is called where it is kept
	written jsonObject
	raw     jsonObject // what the catalog has, as it came; nil: the table is new
	shown   jsonObject // and as its entry shows it
	own     bool       // EntryWrite.Own
}

// writtenTable is the table of an entry as people wrote it: {"Table": {…}}.
func writtenTable(entry []byte) (jsonObject, error) {
	object, err := table.ParseObject(entry)
	if err == nil {
		err = pairedSurrogates(entry)
	}
	if err != nil {
		return nil, err
	}
	t, ok := object["Table"].(jsonObject)
	if !ok || len(object) != 1 {
		return nil, fmt.Errorf("an entry is an object with one member, Table, that is an object; this one has %.300q", slices.Sorted(maps.Keys(object)))
	}
	return t, nil
}

// decodeExact reads JSON that the catalog sent: numbers stay as they came.
func decodeExact(raw []byte) (jsonObject, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var object jsonObject
	err := d.Decode(&object)
	return object, err
}

// of takes what the catalog has.
func (in *tableInput) of(element []byte) (err error) {
	if in.raw, err = decodeExact(withoutNulls(element)); err == nil {
		in.shown, err = decodeExact(readableTimes(withoutNulls(element)))
	}
	return err
}

// make returns the TableInput. The error is what is wrong with the entry, or ErrChanged
// where it names another version than the catalog has.
func (in *tableInput) make() (jsonObject, error) {
	if in.written["Name"] == nil {
		return nil, errors.New("the member Name is missing")
	}
	if err := in.named("Name", in.name.Name); err != nil {
		return nil, err
	}
	if err := in.named("DatabaseName", in.name.Database); err != nil {
		return nil, err
	}
	if err := in.leaveOut(); err != nil {
		return nil, err
	}
	w := in.written
	dropNulls(w)
	if err := restoreTimes(w, in.raw, true); err != nil {
		return nil, err
	}
	if err := in.settleValues(); err != nil {
		return nil, err
	}
	if err := in.settleText(); err != nil {
		return nil, err
	}
	return w, in.settleKind()
}

// named refuses the entry of another table.
func (in *tableInput) named(field, want string) error {
	got := in.written[field]
	if name, ok := got.(string); got != nil && (!ok || name != want) {
		return fmt.Errorf("%s is %.300q, and not %q: it is the entry of another table", field, fmt.Sprint(got), want)
	}
	return nil
}

// leaveOut takes out what no request has, unless it was changed.
func (in *tableInput) leaveOut() error {
	w := in.written
	if version, given := w["VersionId"]; given && version != nil {
		if _, ok := version.(string); !ok {
			return fmt.Errorf("VersionId is %s, and it is a string in every entry", jsonKind(version))
		}
	}
	if version := w["VersionId"]; version != nil && in.raw != nil && !in.own && version != in.shown["VersionId"] {
		return fmt.Errorf("the entry is of version %.100q, and the catalog has %.100q: %w",
			fmt.Sprint(version), fmt.Sprint(in.shown["VersionId"]), objectstore.ErrChanged)
	}
	delete(w, "VersionId")
	for _, field := range glueOwnFields() {
		if v := w[field]; v != nil && in.raw != nil && !in.own && field != "DatabaseName" && !sameJSON(v, in.shown[field]) {
			return fmt.Errorf("%s is the catalog's own and cannot be changed", field)
		}
		delete(w, field)
	}
	return nil
}

// restoreTimes turns the times that an entry shows into what requests take: as they
// came where nobody changed them. Fields of a table itself (top) are always times.
func restoreTimes(written, raw any, top bool) error {
	switch w := written.(type) {
	case jsonObject:
		r, _ := raw.(jsonObject)
		for name, value := range w {
			if err := restoreTime(w, name, value, r[name], top); err != nil {
				return err
			}
		}
	case []any:
		r, _ := raw.([]any)
		for i, value := range w {
			var was any
			if i < len(r) {
				was = r[i]
			}
			if err := restoreTimes(value, was, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func restoreTime(object jsonObject, name string, value, raw any, top bool) error {
	number, was := raw.(json.Number)
	text, ok := value.(string)
	if !ok || !isTimeField(name) || !was && !top {
		return restoreTimes(value, raw, false)
	}
	if shown, ok := isoTime([]byte(number)); ok && shown == text {
		object[name] = number
		return nil
	}
	seconds, err := epochSeconds(text)
	if err != nil {
		return fmt.Errorf("%s is %.100q: %w", name, text, err)
	}
	object[name] = seconds
	return nil
}

// epochSeconds is a time of an entry as a request has it.
func epochSeconds(text string) (json.Number, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "", errors.New("no time as 2026-11-29T12:00:00+00:00")
	}
	seconds := fmt.Sprint(t.Unix())
	if micros := t.Nanosecond() / int(time.Microsecond); micros != 0 {
		whole := big.NewRat(t.UnixMicro(), int64(time.Second/time.Microsecond))
		seconds = strings.TrimRight(whole.FloatString(6), "0")
	}
	return json.Number(seconds), nil
}

// What the service takes of a text, in bytes (rule 13).
const (
	maxComment     = 255
	maxDescription = 2048
)

// settleText: rule 13. What the catalog has stays as it is.
func (in *tableInput) settleText() error {
	w := in.written
	if err := cutText(w, in.raw, "Description", maxDescription, func(s string) string { return s }); err != nil {
		return err
	}
	if err := settleComments(w["PartitionKeys"], in.raw["PartitionKeys"]); err != nil {
		return fmt.Errorf("PartitionKeys: %w", err)
	}
	sd, _ := w["StorageDescriptor"].(jsonObject)
	old, _ := in.raw["StorageDescriptor"].(jsonObject)
	if err := settleComments(sd["Columns"], old["Columns"]); err != nil {
		return fmt.Errorf("StorageDescriptor.Columns: %w", err)
	}
	return nil
}

func settleComments(columns, old any) error {
	was := map[any]jsonObject{}
	before, _ := old.([]any)
	for _, c := range before {
		if c, ok := c.(jsonObject); ok && c["Name"] != nil {
			was[fmt.Sprint(c["Name"])] = c
		}
	}
	all, _ := columns.([]any)
	for _, c := range all {
		if c, ok := c.(jsonObject); ok {
			if err := cutText(c, was[fmt.Sprint(c["Name"])], "Comment", maxComment, oneLine); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutText holds a text that is new to its length.
func cutText(object, old jsonObject, field string, most int, clean func(string) string) error {
	value, there := object[field]
	if !there || sameJSON(value, old[field]) {
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%s is no string", field)
	}
	object[field] = cutAt(clean(text), most)
	return nil
}

// oneLine makes spaces of control characters.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// cutAt is as many whole characters of a text as fit into so many bytes.
func cutAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// sameJSON compares values; numbers by what they are.
func sameJSON(a, b any) bool {
	if x, ok := a.(json.Number); ok {
		y, ok := b.(json.Number)
		return ok && sameNumber(x.String(), y.String())
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(a, b string) bool {
	x, ok := decimalMicros(a)
	y, alsoOK := decimalMicros(b)
	return a == b || ok && alsoOK && x == y
}

// holds says that what the catalog has is what was sent: numbers may be written
// otherwise, and what is empty may be left out or added.
func holds(has, sent any) bool {
	if isEmpty(has) && isEmpty(sent) {
		return true
	}
	switch s := sent.(type) {
	case jsonObject:
		h, ok := has.(jsonObject)
		return ok && holdsMembers(h, s)
	case []any:
		h, _ := has.([]any)
		return slices.EqualFunc(h, s, holds)
	}
	return sameJSON(sent, has)
}

func holdsMembers(has, sent jsonObject) bool {
	for name, value := range has {
		if _, both := sent[name]; !both && !isEmpty(value) {
			return false
		}
	}
	for name, value := range sent {
		if !holds(has[name], value) {
			return false
		}
	}
	return true
}

// isEmpty says that a value is as good as none.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return sameNumber(v.String(), "0")
	case []any:
		return len(v) == 0
	case jsonObject:
		for _, value := range v {
			if !isEmpty(value) {
				return false
			}
		}
		return true
	}
	return false
}
