package table

// ValueText returns the value that an existing name stands for, in whatever spelling;
// ok is false where it is no partition's name. It need not be of its key's type.
func (t *Table) ValueText(name string, level int) (value string, ok bool) {
	return t.valueText(name, level)
}

// OneSpelling says that no two values of a level's key are equal by type but those
// that are equal as text.
func (t *Table) OneSpelling(level int) bool {
	switch baseType(t.Keys[level].Type) {
	case "string", "varchar":
		return true
	}
	return false
}
