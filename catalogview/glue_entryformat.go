package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// SetFormat is [Source]'s (rule 59): from the entry as it is, with all that nobody here
// knows.
func (g *Glue) SetFormat(ctx context.Context, t *table.Table, values []string, f table.FormatChange) error {
	if values != nil {
		return g.setPartitionFormat(ctx, t, values, f)
	}
	const tries = 4 // between the look and the update others may have changed it
	for try := 1; ; try++ {
		err := g.setTableFormat(ctx, t, f)
		if err == nil || try == tries || !errors.Is(err, objectstore.ErrChanged) {
			return err
		}
	}
}

func (g *Glue) setTableFormat(ctx context.Context, t *table.Table, f table.FormatChange) error {
	found := foundTable{as: table.Ref{Database: t.Database, Name: t.Name}}
	var err error
	if found.from, found.element, err = g.locate(ctx, found.as); err != nil {
		return err
	}
	if glueTable(found.as, found.from, found.element).Kind == table.Link {
		return fmt.Errorf("%q is a resource link: what it leads to is changed where that is: %w", found.id(), errors.ErrUnsupported)
	}
	input, err := decodeExact(withoutNulls(found.element))
	if err != nil {
		return err
	}
	for _, field := range append(glueOwnFields(), "VersionId") {
		delete(input, field)
	}
	descriptor, err := formatDescriptor(input, f)
	if err != nil {
		return err
	}
	if err = ownedKeys(input, descriptor); err != nil {
		return err
	}
	return g.updateTable(ctx, found, input)
}

// formatDescriptor is the storage descriptor of an entry, with other formats.
func formatDescriptor(entry jsonObject, f table.FormatChange) (jsonObject, error) {
	descriptor, err := objectOf(entry, "StorageDescriptor")
	if err != nil {
		return nil, err
	}
	if descriptor == nil {
		descriptor = jsonObject{}
		entry["StorageDescriptor"] = descriptor
	}
	setText(descriptor, "InputFormat", f.InputFormat)
	setText(descriptor, "OutputFormat", f.OutputFormat)
	if f.Serde == "" && len(f.Properties) == 0 {
		return descriptor, nil
	}
	serde, err := objectOf(descriptor, "SerdeInfo")
	if err != nil {
		return nil, err
	}
	if serde == nil {
		serde = jsonObject{}
		descriptor["SerdeInfo"] = serde
	}
	setText(serde, "SerializationLibrary", f.Serde)
	properties, err := objectOf(serde, "Parameters")
	if err != nil {
		return nil, err
	}
	if properties == nil && len(f.Properties) > 0 {
		properties = jsonObject{}
		serde["Parameters"] = properties
	}
	for name, value := range f.Properties {
		properties[name] = value
	}
	return descriptor, nil
}

func setText(object jsonObject, name, value string) {
	if value != "" {
		object[name] = value
	}
}

func (g *Glue) setPartitionFormat(ctx context.Context, t *table.Table, values []string, f table.FormatChange) error {
	r := t.Ref()
	about := about(r) + ": " + strings.Join(values, ", ")
	element, err := g.getPartition(ctx, glueCall{op: "GetPartition", about: about}, t, values)
	if err != nil {
		return err
	}
	if f.InputFormat == "" || f.OutputFormat == "" { // the table's as it is now
		if f, err = g.withTableFormats(ctx, r, f); err != nil {
			return err
		}
	}
	input, err := decodeExact(withoutNulls(element))
	if err != nil {
		return err
	}
	for _, field := range []string{"CatalogId", "CreationTime", "DatabaseName", "TableName"} {
		delete(input, field)
	}
	descriptor, err := formatDescriptor(input, f)
	if err != nil {
		return err
	}
	descriptorDefaults(descriptor)
	request := jsonObject{"DatabaseName": r.Database, "TableName": r.Name, "PartitionValueList": values, "PartitionInput": input}
	if id := g.catalog(r.CatalogID); id != nil {
		request["CatalogId"] = *id
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	_, err = askGlue(ctx, g, glueCall{op: "UpdatePartition", about: about}, func(ctx context.Context, api *glue.Client) error {
		_, sendErr := api.UpdatePartition(ctx, &glue.UpdatePartitionInput{
			DatabaseName: aws.String(r.Database), TableName: aws.String(r.Name), PartitionValueList: values, PartitionInput: &types.PartitionInput{},
		}, withGlueBody(body))
		return sendErr
	}, noAnswer)
	if errors.Is(err, objectstore.ErrUnavailable) { // which may have taken effect
		if now, lookErr := g.getPartition(ctx, glueCall{op: "GetPartition", about: about}, t, values); lookErr == nil && tableHolds(now, input) {
			return nil
		}
	}
	return err
}

// withTableFormats fills formats that are not given with those of the table.
func (g *Glue) withTableFormats(ctx context.Context, r table.Ref, f table.FormatChange) (table.FormatChange, error) {
	element, err := g.getTable(ctx, r)
	if err != nil {
		return f, err
	}
	descriptor := member(element, "StorageDescriptor")
	if f.InputFormat == "" {
		f.InputFormat = jsonText(member(descriptor, "InputFormat"))
	}
	if f.OutputFormat == "" {
		f.OutputFormat = jsonText(member(descriptor, "OutputFormat"))
	}
	return f, nil
}
