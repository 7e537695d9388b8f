package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const schemaKey = "spark.sql.sources.schema"

// checkSchema holds the schema that Spark keeps in an entry's parameters,
// whole or in parts, to be there and to be JSON (rule 5). None is no error
// (rule 7).
func checkSchema(parameters map[string]string) error {
	schema, err := joinSchema(parameters)
	if err != nil || schema == "" {
		return err
	}
	var s struct {
		Type   string            `json:"type"`
		Fields []json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		return fmt.Errorf("parameter %s is no JSON schema: %w", schemaKey, err)
	}
	if s.Type != "struct" {
		return fmt.Errorf("parameter %s is of type %.40q, not a struct", schemaKey, s.Type)
	}
	return nil
}

func joinSchema(parameters map[string]string) (string, error) {
	if s, ok := parameters[schemaKey]; ok {
		return s, nil
	}
	there := 0
	for k := range parameters {
		if strings.HasPrefix(k, schemaKey+".part.") {
			there++
		}
	}
	count, ok := parameters[schemaKey+".numParts"]
	if !ok {
		if there > 0 {
			return "", errors.New("parameter " + schemaKey + ".numParts is missing beside its parts")
		}
		return "", nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return "", fmt.Errorf("parameter %s.numParts is %.40q, not a count", schemaKey, count)
	}
	var b strings.Builder
	for i := range n { // ends at the first part that is missing
		part, ok := parameters[schemaKey+".part."+strconv.Itoa(i)]
		if !ok {
			return "", fmt.Errorf("parameter %s.part.%d is missing of %d parts", schemaKey, i, n)
		}
		b.WriteString(part)
	}
	if there != n {
		return "", fmt.Errorf("parameter %s.numParts is %d, but there are %d parts", schemaKey, n, there)
	}
	return b.String(), nil
}
