package table

// ParseGlue reads a table as Glue sends it: GetTable's "Table", or an element of
// GetTables' list. database and name are what it was asked for by. It never returns
// nil: an entry that does not load is of kind Broken, a resource link of kind Link
// with its Target. raw is not kept.
func ParseGlue(database, name string, raw []byte) *Table {
	return NewBroken(database, name, ClassBroken, "not yet")
}
