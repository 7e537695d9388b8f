package catalogview

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/aws/aws-sdk-go-v2/service/glue/types"
)

// pairedSurrogates refuses half a character in JSON that parses ("\ud800"): what reads
// it puts U+FFFD in its place, and the text would not be the one that was written.
func pairedSurrogates(entry []byte) error {
	for i := 0; i < len(entry); i++ {
		if entry[i] != '\\' { // which stands in strings alone
			continue
		}
		i++
		unit, ok := utf16Unit(entry[i-1:])
		if !ok {
			continue
		}
		begin := i - 1
		i += len("u0000") - 1
		if !utf16.IsSurrogate(unit) {
			continue
		}
		low, ok := utf16Unit(entry[i+1:])
		if !ok || utf16.DecodeRune(unit, low) == '\ufffd' {
			return fmt.Errorf("%s at byte %d is half a character, and no text", entry[begin:i+1], begin)
		}
		i += len(`\u0000`)
	}
	return nil
}

// utf16Unit reads an escape as \u00e9 at the beginning of a text.
func utf16Unit(text []byte) (rune, bool) {
	const length = len(`\u0000`)
	if len(text) < length || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:length]), 16, 16)
	return rune(unit), err == nil
}

// settleValues holds each member that the service knows to its type there: another is
// taken by some catalogs and not kept, and by others read as something else. What the
// catalog has stays as it is, and so do members that nobody here knows.
func (in *tableInput) settleValues() error {
	return apiValue("", reflect.TypeFor[types.TableInput](), in.written, anyObject(in.raw))
}

// anyObject is nil for an object that is none.
func anyObject(object jsonObject) any {
	if object == nil {
		return nil
	}
	return object
}

func apiValue(name string, api reflect.Type, value, was any) error {
	for api.Kind() == reflect.Pointer {
		api = api.Elem()
	}
	if was != nil && sameJSON(value, was) {
		return nil
	}
	switch {
	case api == reflect.TypeFor[time.Time]():
		return apiNumber(name, value)
	case api.Kind() == reflect.Struct || api.Kind() == reflect.Map:
		return apiMembers(name, api, value, was)
	case api.Kind() == reflect.Slice:
		return apiList(name, api, value, was)
	case api.Kind() == reflect.String:
		if _, ok := value.(string); !ok {
			return fmt.Errorf("%s is %s, not a string", name, jsonKind(value))
		}
	case api.Kind() == reflect.Bool:
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s is %s, and neither true nor false", name, jsonKind(value))
		}
	case api.Kind() == reflect.Int32 || api.Kind() == reflect.Int64:
		return apiInteger(name, api, value)
	}
	return nil
}

func apiMembers(name string, api reflect.Type, value, was any) error {
	object, ok := value.(jsonObject)
	if !ok {
		return fmt.Errorf("%s is %s, not an object", name, jsonKind(value))
	}
	old, _ := was.(jsonObject)
	for member, v := range object {
		before := old[member]
		var of reflect.Type
		if api.Kind() == reflect.Struct {
			field, known := api.FieldByName(member)
			if !known || !field.IsExported() {
				continue
			}
			of = field.Type
		} else {
			of = api.Elem()
			member = fmt.Sprintf("%.255q", member)
		}
		if err := apiValue(strings.TrimPrefix(name+"."+member, "."), of, v, before); err != nil {
			return err
		}
	}
	return nil
}

func apiList(name string, api reflect.Type, value, was any) error {
	list, ok := value.([]any)
	if !ok {
		return fmt.Errorf("%s is %s, not a list", name, jsonKind(value))
	}
	old, _ := was.([]any)
	for i, v := range list {
		var before any
		if i < len(old) {
			before = old[i]
		}
		if err := apiValue(fmt.Sprintf("%s[%d]", name, i), api.Elem(), v, before); err != nil {
			return err
		}
	}
	return nil
}

func apiNumber(name string, value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return fmt.Errorf("%s is %s, not a time", name, jsonKind(value))
	}
	if _, err := number.Float64(); err != nil {
		return fmt.Errorf("%s is %.100s, which no time is", name, number)
	}
	return nil
}

// apiInteger: of the integers Retention alone has none below 0.
func apiInteger(name string, api reflect.Type, value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return fmt.Errorf("%s is %s, not a number", name, jsonKind(value))
	}
	least := int64(math.MinInt64) >> (64 - api.Bits())
	if name == "Retention" {
		least = 0
	}
	n, err := strconv.ParseInt(number.String(), 10, api.Bits())
	if err != nil || n < least {
		most := int64(math.MaxInt64) >> (64 - api.Bits())
		return fmt.Errorf("%s is %.100s, and no integer from %d to %d", name, number, least, most)
	}
	return nil
}

// jsonKind is what a JSON value is, for messages.
func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}
