package gluetest

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Limits of AWS, in characters.
const (
	nameLimit       = 255
	valueLimit      = 512_000
	typeLimit       = 131_072
	locationLimit   = 2056
	expressionLimit = 2048
	partitionLimit  = 1024 // of one partition value
)

// checkDatabase holds a database's input to the limits.
func checkDatabase(in object) error {
	return first(
		length("databaseInput.name", in.text("Name"), 1, nameLimit),
		parameters("databaseInput.parameters", in.get("Parameters")),
	)
}

// checkTable holds a table's input to the limits.
func checkTable(in object) error {
	return first(
		length("tableInput.name", in.text("Name"), 1, nameLimit),
		columns("tableInput.partitionKeys", in.get("PartitionKeys")),
		parameters("tableInput.parameters", in.get("Parameters")),
		descriptor("tableInput.storageDescriptor", in.get("StorageDescriptor")),
	)
}

// checkPartition holds a partition's input to the limits.
func checkPartition(in object) error {
	values, err := texts(in.get("Values"))
	if err != nil {
		return serialization(err)
	}
	for _, v := range values {
		if err := length("partitionInput.values", v, 0, partitionLimit); err != nil {
			return err
		}
	}
	return first(
		parameters("partitionInput.parameters", in.get("Parameters")),
		descriptor("partitionInput.storageDescriptor", in.get("StorageDescriptor")),
	)
}

func descriptor(what string, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	sd, err := parse(raw)
	if err != nil {
		return serialization(err)
	}
	return first(
		length(what+".location", sd.text("Location"), 0, locationLimit),
		columns(what+".columns", sd.get("Columns")),
		parameters(what+".parameters", sd.get("Parameters")),
	)
}

func columns(what string, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var all []struct{ Name, Type, Comment string }
	if err := json.Unmarshal(raw, &all); err != nil {
		return serialization(err)
	}
	for i, c := range all {
		at := fmt.Sprintf("%s.%d.member.", what, i+1)
		err := first(length(at+"name", c.Name, 1, nameLimit), length(at+"type", c.Type, 0, typeLimit), length(at+"comment", c.Comment, 0, nameLimit))
		if err != nil {
			return err
		}
	}
	return nil
}

func parameters(what string, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var all map[string]*string
	if err := json.Unmarshal(raw, &all); err != nil {
		return serialization(err)
	}
	for name, value := range all {
		if err := length(what+".key", name, 1, nameLimit); err != nil {
			return err
		}
		if value != nil && utf8.RuneCountInString(*value) > valueLimit {
			return refused(what+"."+name, fmt.Sprintf("Member must have length less than or equal to %d", valueLimit))
		}
	}
	return nil
}

func length(what, s string, least, most int) error {
	switch n := utf8.RuneCountInString(s); {
	case n < least:
		return refused(what, fmt.Sprintf("Member must have length greater than or equal to %d", least))
	case n > most:
		return refused(what, fmt.Sprintf("Member must have length less than or equal to %d", most))
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
