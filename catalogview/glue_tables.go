package catalogview

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// ErrLinkLoop is of a database that is a resource link to another one.
var ErrLinkLoop = errors.New("resource links lead to one another")

// Tables is [Source]'s. Those of a link are its target's: a database in which
// nothing is found is looked at, for it may be one. A table that is itself a
// resource link has no Table here, and no ETag: its target is part of its version.
func (g *Glue) Tables(ctx context.Context, database string) iter.Seq2[TableInfo, error] {
	return func(yield func(TableInfo, error) bool) {
		if noGlueName(database) {
			return
		}
		from := table.Ref{Database: database}
		n, goOn := g.tablesOf(ctx, database, from, yield)
		if n > 0 || !goOn {
			return
		}
		target, err := g.linkedDatabase(ctx, from)
		switch {
		case errors.Is(err, objectstore.ErrNotExist), errors.Is(err, objectstore.ErrPermission):
			return // an ordinary empty one; or one that can not be seen, whose listing was answered
		case err != nil:
			yield(TableInfo{}, fmt.Errorf("list tables of %q: %w", database, err))
			return
		}
		if n, goOn = g.tablesOf(ctx, database, target, yield); n > 0 || !goOn {
			return
		}
		if _, err = g.linkedDatabase(ctx, target); err == nil {
			yield(TableInfo{}, fmt.Errorf("list tables of %q: it leads to %q, a resource link too: %w", database, about(target), ErrLinkLoop))
		}
	}
}

// tablesOf yields the tables of a database that is asked for as from. It tells how
// many there were, and false after an error, or when the caller has enough.
func (g *Glue) tablesOf(ctx context.Context, database string, from table.Ref, yield func(TableInfo, error) bool) (int, bool) {
	listing := glueListing{
		glueCall: glueCall{op: "GetTables", about: about(from)}, member: "TableList", most: gluePage, named: true,
		send: func(ctx context.Context, api *glue.Client, token *string, most int32) error {
			_, err := api.GetTables(ctx, &glue.GetTablesInput{
				CatalogId: g.catalog(from.CatalogID), DatabaseName: aws.String(from.Database), NextToken: token, MaxResults: &most,
			})
			return err
		},
	}
	names := map[string]bool{}
	for page, err := range g.pages(ctx, listing) {
		if len(names) == 0 && errors.Is(err, objectstore.ErrNotExist) {
			return 0, true
		}
		if err != nil {
			yield(TableInfo{}, err)
			return len(names), false
		}
		for _, element := range page.elements {
			name := jsonText(member(element, "Name"))
			if name == "" || names[name] { // a name that no path has is for the View to count
				g.log.DebugContext(ctx, "name left out", slog.String("database", about(from)), slog.String("name", name))
				continue
			}
			names[name] = true
			from.Name = name
			info := TableInfo{Name: name, Raw: newGlueRaw("Table", element), Table: glueTable(table.Ref{Database: database, Name: name}, from, element)}
			info.Raw.Bytes = nil
			if info.Table.Kind == table.Link {
				info.Table, info.Raw.ETag = nil, ""
			}
			if !yield(info, nil) {
				return len(names), false
			}
		}
	}
	return len(names), true
}

// glueTable reads a table's entry: as is what it is shown as, from what it was
// asked for by.
func glueTable(as, from table.Ref, element []byte) *table.Table {
	t := table.ParseGlue(as.Database, as.Name, element)
	if t.Target != nil {
		return t
	}
	// The service follows links to databases by itself where it can: the answer
	// tells of which database it is.
	if db := jsonText(member(element, "DatabaseName")); db != "" && db != from.Database {
		from = table.Ref{CatalogID: jsonText(member(element, "CatalogId")), Database: db, Name: as.Name}
	}
	if from.Database != as.Database || from.CatalogID != "" {
		linked := *t
		linked.Target = &from
		return &linked
	}
	return t
}

// Table is [Source]'s. The ETag of a resource link is that of its target too.
func (g *Glue) Table(ctx context.Context, database, name, known string) (*table.Table, Raw, error) {
	as := table.Ref{Database: database, Name: name}
	from, element, err := g.locate(ctx, as)
	if err != nil {
		return nil, Raw{}, err
	}
	t, raw := glueTable(as, from, element), newGlueRaw("Table", element)
	if t.Kind == table.Link && t.Target != nil {
		var version string
		if t, version, err = g.follow(ctx, t); err != nil {
			return nil, Raw{}, fmt.Errorf("table %q: %w", database+"/"+name, err)
		}
		raw.ETag += "-" + version
	}
	if known == raw.ETag {
		raw.Bytes = nil
		return nil, raw, nil
	}
	return t, raw, nil
}

// locate returns a table's entry, and what the catalog has it as: where nothing is found
// in a database, that may be a link. With an error from is where it would be made.
func (g *Glue) locate(ctx context.Context, as table.Ref) (from table.Ref, element []byte, err error) {
	element, err = g.getTable(ctx, as)
	if !errors.Is(err, objectstore.ErrNotExist) || noGlueName(as.Database) || noGlueName(as.Name) {
		return as, element, err
	}
	target, linkErr := g.linkedDatabase(ctx, as)
	if errors.Is(linkErr, objectstore.ErrNotExist) || errors.Is(linkErr, objectstore.ErrPermission) {
		return as, nil, err // that of the table: there is no link that can be seen
	}
	if linkErr != nil {
		return as, nil, fmt.Errorf("table %q: %w", as.Database+"/"+as.Name, linkErr)
	}
	from = table.Ref{CatalogID: target.CatalogID, Database: target.Database, Name: as.Name}
	element, err = g.getTable(ctx, from)
	return from, element, err
}

// getTable returns a table's entry; ErrNotExist where the answer is of another name.
func (g *Glue) getTable(ctx context.Context, r table.Ref) ([]byte, error) {
	call := glueCall{op: "GetTable", about: about(r)}
	if noGlueName(r.Database) || noGlueName(r.Name) {
		return nil, call.fail(objectstore.ErrNotExist)
	}
	element, err := askGlue(ctx, g, call, func(ctx context.Context, api *glue.Client) error {
		_, err := api.GetTable(ctx, &glue.GetTableInput{
			CatalogId: g.catalog(r.CatalogID), DatabaseName: aws.String(r.Database), Name: aws.String(r.Name),
		})
		return err
	}, readMember("Table"))
	if err != nil {
		return nil, err
	}
	name, db := jsonText(member(element, "Name")), jsonText(member(element, "DatabaseName"))
	if name != r.Name || db != r.Database && strings.EqualFold(db, r.Database) {
		return nil, call.fail(fmt.Errorf("the catalog has it as %.300q: %w", db+"/"+name, objectstore.ErrNotExist))
	}
	return element, nil
}

// follow follows a resource link, once: what comes back has the link's name and
// its target's content, or says why there is none. version is the target's.
func (g *Glue) follow(ctx context.Context, link *table.Table) (t *table.Table, version string, err error) {
	to := *link.Target
	element, err := g.getTable(ctx, to)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return deadLink(link, "it is not there"), "gone", nil
	case errors.Is(err, objectstore.ErrPermission):
		return deadLink(link, "access to it is denied"), "denied", nil
	case err != nil:
		return nil, "", err
	}
	version = hashTag(element)
	t = table.ParseGlue(link.Database, link.Name, element)
	if t.Kind == table.Link {
		t = table.NewBroken(link.Database, link.Name, table.ClassLoop,
			fmt.Sprintf("resource link to %.300q, which is a resource link too: no further one is followed", about(to)))
	}
	followed := *t
	followed.Target = &to
	return &followed, version, nil
}

// deadLink is a resource link that leads nowhere: its JSON alone.
func deadLink(link *table.Table, why string) *table.Table {
	return link.WithVerdict(table.ClassView, fmt.Sprintf("resource link to %.300q: %s", about(*link.Target), why))
}
