package catalogview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Databases is [Source]'s. A resource link is one of them; its target is asked for,
// a page's in parallel.
func (g *Glue) Databases(ctx context.Context) iter.Seq2[Database, error] {
	return func(yield func(Database, error) bool) {
		listing := glueListing{
			glueCall: glueCall{op: "GetDatabases", about: g.o.CatalogID}, member: "DatabaseList", most: gluePage, named: true,
			send: func(ctx context.Context, api *glue.Client, token *string, most int32) error {
				_, err := api.GetDatabases(ctx, &glue.GetDatabasesInput{CatalogId: g.catalog(""), NextToken: token, MaxResults: &most})
				return err
			},
		}
		names := map[string]bool{}
		for page, err := range g.pages(ctx, listing) {
			if err != nil {
				yield(Database{}, err)
				return
			}
			var found []Database
			for _, element := range page.elements {
				name := jsonText(member(element, "Name"))
				if name == "" || names[name] { // a name that no path has is for the View to count
					continue
				}
				names[name] = true
				found = append(found, newGlueDatabase(name, element))
			}
			g.settleLinks(ctx, found)
			for _, d := range found {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// settleLinks tells which databases are links that lead nowhere.
func (g *Glue) settleLinks(ctx context.Context, all []Database) {
	var links []int
	for i, d := range all {
		if _, ok := databaseTarget(member(d.Raw.Bytes, "Database")); ok {
			links = append(links, i)
		}
	}
	inParallel(len(links), func(n int) {
		d := &all[links[n]]
		d.NoDirectory = g.leadsNowhere(ctx, member(d.Raw.Bytes, "Database"))
	})
}

// glueTargetTime bounds how long a link's target is asked for: the listing that has
// the link waits for it.
const glueTargetTime = 5 * time.Second

// leadsNowhere says why a database's entry is that of a link without a target; "" for
// every other. Only the service's word counts: a target that may not be seen, one of
// another region, and one that cannot be asked for now may all be there.
func (g *Glue) leadsNowhere(ctx context.Context, element []byte) string {
	target, ok := databaseTarget(element)
	region := jsonText(member(member(element, "TargetDatabase"), "Region"))
	if !ok || region != "" && region != g.client().Options().Region {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, glueTargetTime)
	defer cancel()
	_, err := g.getDatabase(ctx, target)
	var answer *glueError // an answer of another name is none: the service takes names in any case
	if noGlueName(target.Database) || errors.As(err, &answer) && errors.Is(err, objectstore.ErrNotExist) {
		return fmt.Sprintf("resource link to %.300q: it is not there", about(target))
	}
	return ""
}

// Database is [Source]'s. Where GetDatabase is denied there may be one: who has
// rights on a table may have them on it alone. A name like an entry's is not guessed.
func (g *Glue) Database(ctx context.Context, name string) (Database, error) {
	element, err := g.getDatabase(ctx, table.Ref{Database: name})
	switch {
	case accessDenied(err) && !strings.HasSuffix(name, entrySuffix):
		var made bytes.Buffer
		enc := json.NewEncoder(&made)
		enc.SetEscapeHTML(false)
		if err = enc.Encode(struct{ Name string }{name}); err != nil {
			panic(err) // a string always encodes
		}
		d := newGlueDatabase(name, bytes.TrimSpace(made.Bytes()))
		d.Guessed = true
		return d, nil
	case err != nil:
		return Database{}, err
	}
	d := newGlueDatabase(name, element)
	d.NoDirectory = g.leadsNowhere(ctx, element)
	return d, nil
}

func newGlueDatabase(name string, element []byte) Database {
	return Database{Name: name, Raw: newGlueRaw("Database", element)}
}

// newGlueRaw is the entry of a database, table or partition, with Bytes.
func newGlueRaw(kind string, element []byte) Raw {
	b := entryJSON(kind, element)
	return Raw{Bytes: b, Size: int64(len(b)), ETag: hashTag(b), ModTime: glueModTime(element)}
}

// glueModTime is when an entry was changed last; zero where it does not tell.
func glueModTime(element []byte) time.Time {
	for _, name := range []string{"UpdateTime", "CreateTime", "CreationTime"} {
		if t, ok := jsonTime(member(element, name)); ok {
			return t
		}
	}
	return time.Time{}
}

// getDatabase returns a database's entry; ErrNotExist where the answer is of
// another name.
func (g *Glue) getDatabase(ctx context.Context, r table.Ref) ([]byte, error) {
	call := glueCall{op: "GetDatabase", about: about(r)}
	if noGlueName(r.Database) {
		return nil, call.fail(objectstore.ErrNotExist)
	}
	element, err := askGlue(ctx, g, call, func(ctx context.Context, api *glue.Client) error {
		_, err := api.GetDatabase(ctx, &glue.GetDatabaseInput{CatalogId: g.catalog(r.CatalogID), Name: aws.String(r.Database)})
		return err
	}, readMember("Database"))
	if err != nil {
		return nil, err
	}
	if name := jsonText(member(element, "Name")); name != r.Database {
		return nil, call.fail(fmt.Errorf("the catalog has it as %.300q: %w", name, objectstore.ErrNotExist))
	}
	return element, nil
}

// databaseTarget is where a database's entry leads; ok is false for one that is no link.
func databaseTarget(element []byte) (target table.Ref, ok bool) {
	link := member(element, "TargetDatabase")
	target = table.Ref{
		CatalogID: jsonText(member(link, "CatalogId")),
		Database:  jsonText(member(link, "DatabaseName")),
	}
	return target, target.Database != ""
}

// linkedDatabase looks whether a database in which nothing was found is a link,
// and returns where it leads. ErrNotExist where it is none.
func (g *Glue) linkedDatabase(ctx context.Context, r table.Ref) (table.Ref, error) {
	element, err := g.getDatabase(ctx, r)
	if err != nil {
		return table.Ref{}, err
	}
	target, ok := databaseTarget(element)
	if !ok {
		return table.Ref{}, fmt.Errorf("database %q is no resource link: %w", about(r), objectstore.ErrNotExist)
	}
	return target, nil
}
