package table

import (
	"fmt"
	"math"
	"strings"
)

// ParseGlue reads a table as Glue sends it: GetTable's "Table", or an element of
// GetTables' list. database and name are what it was asked for by. It never returns
// nil: an entry that does not load is of kind Broken, a resource link of kind Link
// with its Target. raw is not kept.
//
// Its size is for the caller to bound; it may nest 64 deep. Reasons name the table
// as database.name, and fields and parameters as Glue spells them.
func ParseGlue(database, name string, raw []byte) *Table {
	e, err := readGlue(raw)
	if err == nil {
		e.Database, e.Name = database, name
		err = e.judge()
	}
	if err != nil {
		return NewBroken(database, name, ClassBroken, database+"."+name+": "+err.Error())
	}
	return e.Table
}

func readGlue(raw []byte) (*entry, error) {
	tree, err := parseLoose(raw, maxDepth)
	if err != nil {
		return nil, err
	}
	root := node{dialect: glueDialect, v: tree}
	e := &entry{Table: &Table{}, dialect: glueDialect}
	if e.LakeFormation, err = lakeFormation(root); err != nil {
		return nil, err
	}
	if e.Target, err = readTarget(root); err != nil || e.Target != nil {
		return e, err // nothing else is asked of a link
	}
	unbounded := Limits{MaxColumns: math.MaxInt, MaxKeys: math.MaxInt}
	if err = e.readTop(root, unbounded); err != nil {
		return nil, err
	}
	if e.viewText, err = root.text("view_original_text"); err != nil {
		return nil, err
	}
	return e, e.readStorage(root, unbounded)
}

// lakeFormation is nil where the entry does not say.
func lakeFormation(root node) (*bool, error) {
	const key = "is_registered_with_lake_formation"
	c, err := root.child(key)
	if err != nil || c.v == nil {
		return nil, err
	}
	b, err := root.boolean(key)
	return &b, err
}

// readTarget returns where a resource link leads, nil for another table.
func readTarget(root node) (*Ref, error) {
	c, err := root.child("target_table")
	if err != nil || c.v == nil {
		return nil, err
	}
	var r Ref
	if r.CatalogID, err = c.text("catalog_id"); err != nil {
		return nil, err
	}
	if r.Database, err = c.text("database_name"); err != nil {
		return nil, err
	}
	if r.Name, err = c.text("name"); err != nil {
		return nil, err
	}
	if r.Database == "" || r.Name == "" {
		return nil, fmt.Errorf("%s names no table: it needs DatabaseName and Name", c.path)
	}
	return &r, nil
}

// settlePartitions says who knows the partitions (rule 8). projection.enabled is set
// by hand, the partition provider by every writer: so projection wins.
func (e *entry) settlePartitions() error {
	if !e.dialect.holdsPartitions() || e.Kind != Hive || len(e.Keys) == 0 {
		return nil
	}
	switch {
	case strings.EqualFold(e.Parameters["projection.enabled"], "true"):
		p, err := parseProjection(e.Keys, e.Parameters)
		if err != nil {
			return err
		}
		e.Partitions, e.Projection = PartitionsProjected, p
	case !strings.EqualFold(e.Parameters["spark.sql.partitionProvider"], "filesystem"):
		e.Partitions = PartitionsInCatalog
	}
	return nil
}
