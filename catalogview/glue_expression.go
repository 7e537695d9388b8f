package catalogview

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// maxGlueExpression is the longest expression that the service takes, in bytes.
const maxGlueExpression = 2048

// glueExpression narrows a listing to partitions whose first values are these; ""
// where no expression can. It never leaves one out that has these values, and may
// let others through: the caller looks at the values again.
//
// A key whose type the service may refuse, and a value that it may read otherwise
// than as these characters, is left to that look.
func glueExpression(keys []table.Column, prefix []string) string {
	var terms []string
	for i, value := range prefix[:min(len(prefix), len(keys))] {
		if literal, ok := glueLiteral(keys[i].Type, value); ok && isGlueIdentifier(keys[i].Name) {
			terms = append(terms, keys[i].Name+"="+literal)
		}
	}
	expression := strings.Join(terms, " AND ")
	if len(expression) > maxGlueExpression {
		return ""
	}
	return expression
}

// glueLiteral is a value in an expression.
func glueLiteral(typ, value string) (string, bool) {
	if value == "" || value == table.HiveNull {
		return "", false // it may count as NULL, which equals nothing
	}
	switch strings.ToLower(strings.TrimSpace(typ)) {
	case "tinyint", "smallint", "int", "integer", "bigint", "long":
		n, err := strconv.ParseInt(value, 10, 64)
		return strconv.FormatInt(n, 10), err == nil
	case "string", "date", "timestamp":
		if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' }) {
			return "", false // the grammar may take a backslash as an escape
		}
		return "'" + strings.ReplaceAll(value, "'", "''") + "'", true
	}
	return "", false
}

// isGlueIdentifier says that a key needs no quotes, for there are none.
func isGlueIdentifier(name string) bool {
	ok, err := regexp.MatchString(`^[A-Za-z_][A-Za-z0-9_]*$`, name)
	return ok && err == nil
}
