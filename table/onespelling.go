package table

// OneSpelling says that no two values of a level's key are equal by type but those
// that are equal as text.
func (t *Table) OneSpelling(level int) bool {
	switch baseType(t.Keys[level].Type) {
	case "string", "varchar":
		return true
	}
	return false
}
