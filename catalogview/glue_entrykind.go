package catalogview

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// settleKind adds to an entry what every table has that this program writes: rules 14,
// 15 and 16. A view is left as it is.
func (in *tableInput) settleKind() error {
	w := in.written
	if w["TargetTable"] != nil {
		return errors.New("it is a resource link, and those are not written here")
	}
	descriptor, err := objectOf(w, "StorageDescriptor")
	if err != nil {
		return err
	}
	parameters, err := objectOf(w, "Parameters")
	if err != nil {
		return err
	}
	serde, err := objectOf(descriptor, "SerdeInfo")
	if err == nil {
		serde, err = objectOf(serde, "Parameters")
	}
	if err != nil {
		return err
	}
	if err = ownedKeys(w, descriptor); err != nil || in.isView() {
		return err
	}
	if parameters == nil {
		parameters = jsonObject{}
		w["Parameters"] = parameters
	}
	if kind, _ := w["TableType"].(string); kind != "GOVERNED" {
		w["TableType"] = "EXTERNAL_TABLE"
	}
	if is, _ := parameters["EXTERNAL"].(string); !strings.EqualFold(is, "true") {
		parameters["EXTERNAL"] = "TRUE"
	}
	splitSchema(parameters)
	return settleDelta(parameters, descriptor, serde)
}

// isView says that the entry is a view's, however it says so.
func (in *tableInput) isView() bool {
	body, err := json.Marshal(in.written)
	return err == nil && table.ParseGlue(in.name.Database, in.name.Name, body).Kind == table.View
}

// objectOf is a member that is an object; nil where there is none.
func objectOf(object jsonObject, name string) (jsonObject, error) {
	switch v := object[name].(type) {
	case nil:
		return nil, nil //nolint:nilnil // an object that is not there is an empty one
	case jsonObject:
		return v, nil
	}
	return nil, fmt.Errorf("%s is no object", name)
}

// ownedKeys puts the four keys that clients of Hive need into every update (rule 15):
// as they were written, so that a table with buckets keeps their number, else as Hive
// writes them.
func ownedKeys(w, descriptor jsonObject) error {
	if _, there := w["Retention"]; !there {
		w["Retention"] = json.Number("0")
	}
	if _, ok := w["Retention"].(json.Number); !ok {
		return errors.New("the member Retention is no number")
	}
	if descriptor == nil {
		return nil // loading says so, of what is no view
	}
	descriptorDefaults(descriptor)
	if _, ok := descriptor["NumberOfBuckets"].(json.Number); !ok {
		return errors.New("StorageDescriptor.NumberOfBuckets is no number")
	}
	for _, name := range []string{"Compressed", "StoredAsSubDirectories"} {
		if _, ok := descriptor[name].(bool); !ok {
			return fmt.Errorf("StorageDescriptor.%s is neither true nor false", name)
		}
	}
	return nil
}

// descriptorDefaults are those of rule 15, for what a storage descriptor lacks.
func descriptorDefaults(descriptor jsonObject) {
	for name, value := range map[string]any{"Compressed": false, "NumberOfBuckets": json.Number("-1"), "StoredAsSubDirectories": false} {
		if _, there := descriptor[name]; !there {
			descriptor[name] = value
		}
	}
}

const (
	sparkSchemaKey = "spark.sql.sources.schema"
	maxSchemaPart  = 4000 // characters: Spark's threshold
)

// splitSchema keeps a long schema in parts, as Spark does (rule 16).
func splitSchema(parameters jsonObject) {
	schema, _ := parameters[sparkSchemaKey].(string)
	parts := splitText(schema, maxSchemaPart)
	if len(parts) < 2 {
		return
	}
	for name := range maps.Clone(parameters) {
		if strings.HasPrefix(name, sparkSchemaKey+".part.") {
			delete(parameters, name)
		}
	}
	delete(parameters, sparkSchemaKey)
	parameters[sparkSchemaKey+".numParts"] = strconv.Itoa(len(parts))
	for i, part := range parts {
		parameters[sparkSchemaKey+".part."+strconv.Itoa(i)] = part
	}
}

// splitText cuts a text into parts of as many of Java's characters at most.
func splitText(s string, most int) []string {
	var parts []string
	start, length := 0, 0
	for i, r := range s {
		n := utf16.RuneLen(r)
		if length+n > most {
			parts = append(parts, s[start:i])
			start, length = i, 0
		}
		length += n
	}
	return append(parts, s[start:])
}

// settleDelta: of a Delta table Athena reads table_type and the descriptor's location,
// where Spark's Hive path leaves a placeholder: the SerDe's path is the real one then, by
// which everybody else finds the table (rule 3).
func settleDelta(parameters, descriptor, serde jsonObject) error {
	provider, _ := parameters["spark.sql.sources.provider"].(string)
	if !strings.EqualFold(strings.TrimSpace(provider), "delta") {
		return nil
	}
	kind, _ := parameters["table_type"].(string)
	if kind != "" && !strings.EqualFold(kind, "DELTA") {
		return fmt.Errorf("its provider is delta and its parameter table_type %.100q", kind)
	}
	if kind == "" {
		parameters["table_type"] = "DELTA"
	}
	location, _ := descriptor["Location"].(string)
	if !noLocation(location) {
		return nil
	}
	path, _ := serde["path"].(string)
	if descriptor == nil || noLocation(path) {
		return fmt.Errorf("StorageDescriptor.Location is %.300q: a Delta table needs its real location there", location)
	}
	descriptor["Location"] = path
	return nil
}

// noLocation says that a location is none, or Spark's placeholder for one.
func noLocation(location string) bool {
	return location == "" || strings.HasSuffix(strings.TrimRight(location, "/"), "-__PLACEHOLDER__")
}

// keysDiffer says that partition keys have other names, types or another order; a
// comment does not count.
func keysDiffer(a, b any) bool {
	return !slices.Equal(keyNames(a), keyNames(b))
}

func keyNames(keys any) []string {
	var names []string
	all, _ := keys.([]any)
	for _, k := range all {
		k, _ := k.(jsonObject)
		names = append(names, fmt.Sprintf("%q %q", k["Name"], k["Type"]))
	}
	return names
}
