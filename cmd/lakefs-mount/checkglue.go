package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// How far check looks into a Glue catalog, which may have millions of tables.
const (
	checkGlueTime      = 2 * time.Minute
	checkGlueDatabases = 100 // one page
	checkGlueListed    = 10  // databases whose tables are listed
	checkGlueTables    = 100 // of all of these
	checkGlueLoaded    = 20  // tables whose entry is asked for
	checkGlueBuckets   = 3
)

// Names of the findings on a Glue catalog.
const (
	checkDatabases     = "glue:GetDatabases"
	checkDatabase      = "glue:GetDatabase"
	checkTables        = "glue:GetTables"
	checkGetTable      = "glue:GetTable"
	checkPartitions    = "glue:GetPartitions"
	checkPartition     = "glue:GetPartition"
	checkCatalogWrites = "catalog writes"
)

// catalogCheck looks at a Glue catalog, one promise after another, and at the
// buckets of the first tables.
type catalogCheck struct {
	bucketCheck

	src  catalogview.Source
	view *catalogview.View

	tables    []catalogview.TableInfo // found
	databases []string                // whose tables they are
}

// run looks at everything that it can reach. A service that does not answer ends
// it: each further question would wait as long.
func (c *catalogCheck) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkGlueTime)
	defer cancel()
	endpoint := catalogEndpoint(c.r)
	if !c.credentials(ctx) {
		return
	}
	if _, reached := c.reaches(ctx, endpoint, endpoint, "--glue-endpoint-url"); !reached {
		return
	}
	c.report(finding{what: checkRegion, detail: c.r.aws.main.Region})
	names, err := c.listDatabases(ctx)
	if err == nil {
		err = c.listTables(ctx, names)
	}
	if err == nil {
		err = c.loadTables(ctx)
	}
	if err == nil {
		c.writes()
	}
}

// failedCall reports the error of a call, and returns it if nothing more is to be
// asked.
func (c *catalogCheck) failedCall(call glueCall, err error) error {
	what := "glue:" + call.action
	if call.database != "" {
		what += fmt.Sprintf(" %q", strings.TrimSuffix(call.database+"/"+call.table, "/"))
	}
	c.report(finding{what: what, problem: err.Error(), remedy: call.remedy(c.r, err)})
	if errors.Is(err, objectstore.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// deadLink warns of a database that is a link without anything behind it.
func (c *catalogCheck) deadLink(name, problem, remedy string) {
	c.report(finding{what: fmt.Sprintf("database %q", name), warning: true, problem: problem, remedy: remedy})
}

// listDatabases returns the first ones that have a directory. An error was reported.
func (c *catalogCheck) listDatabases(ctx context.Context) ([]string, error) {
	var names []string
	found := 0
	for d, err := range c.src.Databases(ctx) {
		if err != nil {
			_ = c.failedCall(glueCall{action: "GetDatabases"}, err) // the end in any case
			return nil, err
		}
		if d.NoDirectory == "" {
			names = append(names, d.Name)
		} else {
			c.deadLink(d.Name, d.NoDirectory, fmt.Sprintf("make its target, or delete the link (aws glue delete-database --name %s); see %q in the mount", shellQuote(d.Name), d.Name+".json"))
		}
		if found++; found == checkGlueDatabases {
			break
		}
	}
	f := finding{what: checkDatabases, detail: "works, " + countOf(found, "database")}
	switch {
	case found == checkGlueDatabases:
		f.detail = fmt.Sprintf("works, the first %d databases were looked at", found)
	case found == 0 && len(c.r.settings.Databases) > 0:
		f = finding{what: checkDatabases, warning: true, problem: "no database matches --database", remedy: "look at the patterns; list the names with: aws glue get-databases --query 'DatabaseList[].Name'"}
	}
	c.report(f)
	return names, nil
}

// listTables lists the tables of the first databases. An error was reported, and
// ends the check; what is refused is reported by database.
func (c *catalogCheck) listTables(ctx context.Context, names []string) error {
	asked, listed := false, 0
	for _, name := range names[:min(len(names), checkGlueListed)] {
		if !asked {
			asked = true
			if err := c.database(ctx, name); err != nil {
				return err
			}
		}
		done, err := c.tablesOf(ctx, name)
		if err != nil {
			return err
		}
		if done {
			listed++
		}
		if len(c.tables) == checkGlueTables {
			break
		}
	}
	if listed > 0 {
		c.report(finding{what: checkTables, detail: fmt.Sprintf("works, %s of %s looked at", countOf(len(c.tables), "table"), countOf(listed, "database"))})
	}
	return nil
}

func (c *catalogCheck) database(ctx context.Context, name string) error {
	d, err := c.src.Database(ctx, name)
	if err == nil && d.Guessed {
		err = fmt.Errorf("database %q: %w", name, errNotSeen)
	}
	if err != nil {
		return c.failedCall(glueCall{action: "GetDatabase", database: name}, err)
	}
	c.report(finding{what: checkDatabase, detail: "works"})
	return nil
}

// tablesOf notes the tables of a database, and tells whether it could be listed.
func (c *catalogCheck) tablesOf(ctx context.Context, database string) (bool, error) {
	for t, err := range c.src.Tables(ctx, database) {
		if errors.Is(err, catalogview.ErrLinkLoop) {
			c.deadLink(database, err.Error(), fmt.Sprintf("let it lead to a database that is no link itself; see %q in the mount", database+".json"))
			return false, nil
		}
		if err != nil {
			return false, c.failedCall(glueCall{action: "GetTables", database: database}, err)
		}
		c.tables, c.databases = append(c.tables, t), append(c.databases, database)
		if len(c.tables) == checkGlueTables {
			break
		}
	}
	return true, nil
}

// loadTables asks for the entries of the first tables as the mount does, and looks
// at the partitions of one, and at their buckets.
func (c *catalogCheck) loadTables(ctx context.Context) error {
	nodes, err := c.entries(ctx)
	if err != nil {
		return err
	}
	if err := c.partitions(ctx, nodes); err != nil {
		return err
	}
	c.buckets(ctx, nodes)
	return nil
}

// entries are the first tables. Where the first is refused, so would be the next.
func (c *catalogCheck) entries(ctx context.Context) ([]catalogview.Node, error) {
	var nodes []catalogview.Node
	for i, t := range c.tables[:min(len(c.tables), checkGlueLoaded)] {
		call := glueCall{action: "GetTable", database: c.databases[i], table: t.Name}
		if i == 0 {
			if _, _, err := c.src.Table(ctx, call.database, call.table, ""); err != nil {
				return nil, c.failedCall(call, err)
			}
			c.report(finding{what: checkGetTable, detail: "works"})
		}
		node, err := c.view.Lookup(ctx, call.database+"/"+call.table)
		if err != nil && !errors.Is(err, objectstore.ErrNotExist) { // else a view, or a link that leads nowhere
			if err = c.failedCall(call, err); err != nil {
				return nil, err
			}
			continue
		}
		if node.Table != nil {
			c.verdict(node)
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// verdict reports a table that cannot be read. It keeps nothing else from working.
func (c *catalogCheck) verdict(n catalogview.Node) {
	t := n.Table
	if t.Readable {
		return
	}
	f := finding{what: fmt.Sprintf("table %q", n.Path), table: n.Path, warning: true, problem: tableProblem(t)}
	if f.remedy = fmt.Sprintf("see %q and %q in the mount", n.Path+".json", n.Path+"/.lakefs/status.json"); t.Outside != "" {
		f.remedy = tableRemedy(t, n.Path)
	}
	c.report(f)
}

// partitions looks at the first table whose partitions the catalog has.
func (c *catalogCheck) partitions(ctx context.Context, nodes []catalogview.Node) error {
	for _, n := range nodes {
		t := n.Table
		if !t.Readable || t.Partitions != table.PartitionsInCatalog {
			continue
		}
		call := glueCall{action: "GetPartitions", database: t.Ref().Database, table: t.Ref().Name}
		for p, err := range c.src.Partitions(ctx, t, nil) {
			if err != nil {
				return c.failedCall(call, err)
			}
			if p.Broken != "" {
				continue
			}
			c.report(finding{what: checkPartitions, detail: "works"})
			if _, _, err := c.src.Partition(ctx, t, p.Values); err != nil {
				call.action = "GetPartition"
				return c.failedCall(call, err)
			}
			c.report(finding{what: checkPartition, detail: "works"})
			return nil
		}
		c.report(finding{what: checkPartitions, detail: fmt.Sprintf("works: %q has none", n.Path)})
		return nil
	}
	c.report(finding{what: checkPartitions, detail: "not tried: no partitioned table among those looked at"})
	return nil
}

// buckets lists and reads in those of the first tables.
func (c *catalogCheck) buckets(ctx context.Context, nodes []catalogview.Node) {
	seen := map[string]bool{}
	for _, n := range nodes {
		at := n.Location()
		if !n.Table.Readable || at.Bucket == "" || seen[at.Bucket] {
			continue
		}
		if seen[at.Bucket] = true; len(seen) > checkGlueBuckets {
			return
		}
		if found, listed := c.list(ctx, at); listed {
			c.get(ctx, found, at)
		}
	}
	if len(seen) == 0 {
		c.report(finding{what: checkList, detail: "not tried: no table to read among those looked at"})
	}
}

// writes says what a publish needs: trying it would leave something behind.
func (c *catalogCheck) writes() {
	if !registers(c.r) {
		c.report(finding{what: checkCatalogWrites, detail: "none: no partition is registered (--read-only, --write=none or --catalog-writes=none)"})
		return
	}
	detail := "not tried: a file in a new partition needs s3:PutObject, and to register it this statement: " +
		glueCall{action: "BatchCreatePartition"}.policy(c.r)
	if c.r.settings.Write == settings.WriteDelete {
		detail += "; to deregister one that is removed: " + glueCall{action: "DeletePartition"}.policy(c.r)
	}
	if writesEntries(c.r) {
		for _, action := range []string{"UpdateTable", "CreateTable", "DeleteTable"} {
			detail += "; to write entries: " + glueCall{action: action}.policy(c.r)
		}
	}
	c.report(finding{what: checkCatalogWrites, detail: detail})
}
