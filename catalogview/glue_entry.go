package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// PutTable is [Source]'s. The entry is the JSON that is shown; what it says is what the
// table has then, but for what the catalog tells of itself. It is read before, and
// after: UpdateTable answers with nothing.
func (g *Glue) PutTable(ctx context.Context, database, name string, w EntryWrite) (*table.Table, Raw, error) {
	id := database + "/" + name
	invalid := func(err error) error {
		if errors.Is(err, objectstore.ErrChanged) {
			return fmt.Errorf("entry of %q: %w", id, err)
		}
		return &EntryError{Path: id, Reason: err.Error()}
	}
	written, err := writtenTable(w.Entry)
	if err != nil {
		return nil, Raw{}, invalid(err)
	}
	found, err := g.find(ctx, database, name, w.Base)
	if err != nil {
		return nil, Raw{}, err
	}
	in := tableInput{name: found.from, written: written, own: w.Own}
	if found.element != nil {
		err = in.of(found.element)
	} else {
		err = newGlueName(database, name)
	}
	var input jsonObject
	if err == nil {
		input, err = in.make()
	}
	if err != nil {
		return nil, Raw{}, invalid(err)
	}
	t, err := g.admit(ctx, found, in, w)
	if err != nil {
		return nil, Raw{}, err
	}
	if found.element == nil {
		err = g.createTable(ctx, found, input)
	} else {
		err = g.updateTable(ctx, found, input)
	}
	if err != nil {
		return nil, Raw{}, refusedByGlue(id, err)
	}
	if now, raw, err := g.Table(ctx, database, name, ""); err == nil {
		return now, raw, nil
	}
	// It is written, and what the catalog makes of it the next look-up tells.
	return t, Raw{Bytes: w.Entry, Size: int64(len(w.Entry)), ETag: "written-" + hashTag(w.Entry)}, nil
}

// foundTable is what the catalog has of a table.
type foundTable struct {
	as, from table.Ref // as whose entry it is shown, and what the catalog has it as
	element  []byte    // nil: there is none
}

// find finds what is to be replaced; ErrExist and ErrChanged where that is not of the
// version base.
func (g *Glue) find(ctx context.Context, database, name, base string) (foundTable, error) {
	f := foundTable{as: table.Ref{Database: database, Name: name}}
	var err error
	f.from, f.element, err = g.locate(ctx, f.as)
	absent := errors.Is(err, objectstore.ErrNotExist)
	switch {
	case err != nil && !absent:
		return f, err
	case absent && base == "":
		f.element = nil
		return f, nil
	case base == "":
		return f, fmt.Errorf("table %q: %w", f.id(), objectstore.ErrExist)
	case absent || !f.is(base):
		return f, fmt.Errorf("entry of %q: the catalog has another version: %w", f.id(), objectstore.ErrChanged)
	}
	return f, nil
}

func (f foundTable) id() string { return f.as.Database + "/" + f.as.Name }

// is says that the entry is of a version; of a link's only its own counts.
func (f foundTable) is(version string) bool {
	version, _, _ = strings.Cut(version, "-")
	return newGlueRaw("Table", f.element).ETag == version
}

// newGlueName refuses names that the service would change.
func newGlueName(database, name string) error {
	for _, s := range []string{database, name} {
		if strings.ContainsFunc(s, unicode.IsUpper) {
			return fmt.Errorf("%.300q has capital letters, and the catalog's names have none", s)
		}
	}
	return nil
}

// admit holds what is to be written to what loading asks for, and to what a change may
// be. It returns the table that it would load as.
func (g *Glue) admit(ctx context.Context, f foundTable, in tableInput, w EntryWrite) (*table.Table, error) {
	invalid := func(format string, args ...any) error {
		return &EntryError{Path: f.id(), Reason: fmt.Sprintf(format, args...)}
	}
	body, err := json.Marshal(in.written)
	if err != nil {
		return nil, invalid("%v", err)
	}
	t := table.ParseGlue(f.as.Database, f.as.Name, body)
	if t.Kind == table.Broken {
		return nil, invalid("%s", strings.TrimPrefix(t.Reason, f.as.Database+"."+f.as.Name+": "))
	}
	if f.element != nil {
		old := glueTable(f.as, f.from, f.element)
		if old.Kind == table.Link {
			return nil, invalid("it is a resource link: what it leads to is changed where that is")
		}
		if t.Kind == table.Hive && t.DataSource() == "" && len(t.Columns) == 0 && len(old.Columns) > 0 {
			return nil, invalid("StorageDescriptor.Columns is missing: the table would have no columns")
		}
		if old.Partitions == table.PartitionsInCatalog && keysDiffer(in.written["PartitionKeys"], in.raw["PartitionKeys"]) {
			if err := g.withoutPartitions(ctx, old); err != nil {
				return nil, err
			}
		}
	}
	return t, w.accept(ctx, t)
}

// withoutPartitions refuses other keys for a table that has partitions: they would have
// values of other keys.
func (g *Glue) withoutPartitions(ctx context.Context, t *table.Table) error {
	for _, err := range g.Partitions(ctx, t, nil) {
		if err != nil {
			return err
		}
		return &EntryError{Path: t.Database + "/" + t.Name, Reason: "PartitionKeys cannot be changed while the table has partitions in the catalog"}
	}
	return nil
}

// refusedByGlue tells of what the service finds wrong with an entry.
func refusedByGlue(id string, err error) error {
	var e *glueError
	if errors.As(err, &e) {
		switch e.code {
		case "InvalidInputException", "ValidationException", "SerializationException":
			return &EntryError{Path: id, Reason: "the catalog refuses it: " + e.text}
		}
	}
	return err
}

// tableRequest is a request about a table, with more members. The SDK's structs leave
// out false and 0, and what they do not know: the body is made here.
func (g *Glue) tableRequest(r table.Ref, input jsonObject, more jsonObject) ([]byte, error) {
	request := jsonObject{"DatabaseName": r.Database, "TableInput": input}
	if id := g.catalog(r.CatalogID); id != nil {
		request["CatalogId"] = *id
	}
	for name, value := range more {
		request[name] = value
	}
	return json.Marshal(request)
}

func (g *Glue) createTable(ctx context.Context, f foundTable, input jsonObject) error {
	body, err := g.tableRequest(f.from, input, nil)
	if err != nil {
		return err
	}
	attempts := 0
	_, err = askGlue(ctx, g, glueCall{op: "CreateTable", about: about(f.from)}, func(ctx context.Context, api *glue.Client) error {
		attempts++
		_, sendErr := api.CreateTable(ctx, &glue.CreateTableInput{
			DatabaseName: aws.String(f.from.Database), TableInput: &types.TableInput{Name: aws.String(f.from.Name)},
		}, withGlueBody(body))
		return sendErr
	}, noAnswer)
	exists := alreadyExists(err)
	if exists && attempts > 1 || errors.Is(err, objectstore.ErrUnavailable) { // which may have taken effect
		if now, lookErr := g.getTable(ctx, f.from); lookErr == nil && tableHolds(now, input) {
			return nil
		}
	}
	if exists {
		return fmt.Errorf("table %q: %w", f.id(), objectstore.ErrExist)
	}
	return err
}

// noAnswer takes an answer that tells nothing.
func noAnswer([]byte) (struct{}, error) { return struct{}{}, nil }

// tableHolds says that an entry is what was sent.
func tableHolds(element []byte, input jsonObject) bool {
	now, err := decodeExact(element)
	for _, field := range append(glueOwnFields(), "VersionId", "CreationTime", "TableName") { // a partition's too
		delete(now, field)
	}
	return err == nil && holds(now, input)
}

// updateTable replaces the entry that was found, if it is still that one.
func (g *Glue) updateTable(ctx context.Context, f foundTable, input jsonObject) error {
	more := jsonObject{"SkipArchive": true}
	if version := jsonText(member(f.element, "VersionId")); version != "" {
		more["VersionId"] = version
	}
	body, err := g.tableRequest(f.from, input, more)
	if err != nil {
		return err
	}
	defer g.forgetDescriptor(f.from)
	const tries = 4 // a change by others may be under way, and come to nothing
	attempts := 0
	for try := 1; ; try++ {
		_, err = askGlue(ctx, g, glueCall{op: "UpdateTable", about: about(f.from), versioned: true}, func(ctx context.Context, api *glue.Client) error {
			attempts++
			_, sendErr := api.UpdateTable(ctx, &glue.UpdateTableInput{
				DatabaseName: aws.String(f.from.Database), TableInput: &types.TableInput{Name: aws.String(f.from.Name)},
			}, withGlueBody(body))
			return sendErr
		}, noAnswer)
		changed := errors.Is(err, objectstore.ErrChanged)
		switch {
		case errors.Is(err, objectstore.ErrNotExist):
			return fmt.Errorf("table %q went: %w", f.id(), objectstore.ErrChanged)
		case !changed && !errors.Is(err, objectstore.ErrUnavailable):
			return err
		}
		// An attempt whose answer was lost may have taken effect.
		now, lookErr := g.getTable(ctx, f.from)
		switch same := lookErr == nil && string(now) == string(f.element); {
		case lookErr == nil && !same && (attempts > try || !changed) && tableHolds(now, input):
			return nil
		case lookErr == nil && !same:
			return fmt.Errorf("entry of %q: the catalog has another version: %w", f.id(), objectstore.ErrChanged)
		case lookErr != nil || !changed || try == tries:
			return err
		}
	}
}

// DeleteTable is [Source]'s: of a resource link the link alone. The service drops the
// entries of the partitions with that of the table.
func (g *Glue) DeleteTable(ctx context.Context, database, name, base string) error {
	as := table.Ref{Database: database, Name: name}
	from, element, err := g.locate(ctx, as)
	if err != nil {
		return err
	}
	if f := (foundTable{as: as, from: from, element: element}); base != "" && !f.is(base) {
		return fmt.Errorf("drop the entry of %q: the catalog has another version: %w", f.id(), objectstore.ErrChanged)
	}
	defer g.forgetDescriptor(from)
	attempts := 0
	_, err = askGlue(ctx, g, glueCall{op: "DeleteTable", about: about(from)}, func(ctx context.Context, api *glue.Client) error {
		attempts++
		_, sendErr := api.DeleteTable(ctx, &glue.DeleteTableInput{
			CatalogId: g.catalog(from.CatalogID), DatabaseName: aws.String(from.Database), Name: aws.String(from.Name),
		})
		return sendErr
	}, noAnswer)
	switch {
	case errors.Is(err, objectstore.ErrNotExist) && attempts > 1:
		return nil
	case errors.Is(err, objectstore.ErrUnavailable): // which may have taken effect
		if _, lookErr := g.getTable(ctx, from); errors.Is(lookErr, objectstore.ErrNotExist) {
			return nil
		}
	}
	return err
}
