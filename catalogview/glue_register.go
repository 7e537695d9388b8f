package catalogview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Register is [Source]'s. The descriptor is the one that the table has now.
func (g *Glue) Register(ctx context.Context, t *table.Table, values []string, location string) (string, error) {
	r := t.Ref()
	if len(values) != len(t.Keys) || len(values) == 0 {
		return "", fmt.Errorf("register a partition of %q: %d values for %d keys", about(r), len(values), len(t.Keys))
	}
	element, err := g.getTable(ctx, r)
	if err != nil {
		return "", err
	}
	descriptor, err := partitionDescriptor(element, location)
	if err != nil {
		return "", fmt.Errorf("register a partition of %q: %w", about(r), err)
	}
	err = g.createPartition(ctx, r, values, descriptor)
	switch {
	case err == nil:
		return location, nil
	case alreadyExists(err), errors.Is(err, objectstore.ErrUnavailable): // which may have taken effect
		p, _, there := g.Partition(ctx, t, values)
		if there == nil {
			return p.Location, nil
		}
		if alreadyExists(err) {
			return "", there
		}
	}
	return "", err
}

func alreadyExists(err error) bool {
	var e *glueError
	return errors.As(err, &e) && e.code == "AlreadyExistsException"
}

// partitionDescriptor is a table's storage descriptor as a partition of it has it
// (rules 3 and 15): everything as the table has it, what nobody here knows too.
func partitionDescriptor(element []byte, location string) (map[string]any, error) {
	descriptor := map[string]any{}
	if raw := member(element, "StorageDescriptor"); raw != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // exact
		if err := d.Decode(&descriptor); err != nil {
			return nil, fmt.Errorf("the table's storage descriptor: %w", err)
		}
	}
	dropNulls(descriptor)
	if serde, ok := descriptor["SerdeInfo"].(map[string]any); ok {
		if parameters, ok := serde["Parameters"].(map[string]any); ok {
			delete(parameters, "path")
		}
	}
	for name, value := range map[string]any{"Compressed": false, "NumberOfBuckets": -1, "StoredAsSubDirectories": false} {
		if _, ok := descriptor[name]; !ok {
			descriptor[name] = value
		}
	}
	descriptor["Location"] = location
	return descriptor, nil
}

// dropNulls: null is how emulators say that something is absent, and no request's.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			}
			dropNulls(value)
		}
	case []any:
		for _, value := range v {
			dropNulls(value)
		}
	}
}

// createPartition registers a partition, as a batch of one. The SDK's structs
// leave out false and 0, and what they do not know: the body is made here.
func (g *Glue) createPartition(ctx context.Context, r table.Ref, values []string, descriptor map[string]any) error {
	request := map[string]any{
		"DatabaseName": r.Database, "TableName": r.Name,
		"PartitionInputList": []any{map[string]any{"Values": values, "StorageDescriptor": descriptor}},
	}
	if id := g.catalog(r.CatalogID); id != nil {
		request["CatalogId"] = *id
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("register a partition of %q: %w", about(r), err)
	}
	send := func(ctx context.Context, api *glue.Client) error {
		_, sendErr := api.BatchCreatePartition(ctx, &glue.BatchCreatePartitionInput{
			DatabaseName: aws.String(r.Database), TableName: aws.String(r.Name), PartitionInputList: []types.PartitionInput{},
		}, withGlueBody(body))
		return sendErr
	}
	_, err = askGlue(ctx, g, glueCall{op: "BatchCreatePartition", about: about(r)}, send, readBatch)
	return err
}

// readBatch takes the answer to a batch of one, whose error may be inside a success.
func readBatch(body []byte) (struct{}, error) {
	list := member(body, "Errors")
	if list != nil && list[0] != '[' {
		return struct{}{}, oddAnswer("Errors in the answer is no list")
	}
	for e := range elements(list) {
		detail := member(e, "ErrorDetail")
		err := &glueError{code: printable(jsonText(member(detail, "ErrorCode"))), text: printable(jsonText(member(detail, "ErrorMessage")))}
		err.sentinel, err.passing, _ = codeMeaning(err.code)
		if err.code == "InternalServiceException" || err.code == "" {
			err.sentinel, err.passing, err.attempts = objectstore.ErrUnavailable, true, glueServerAttempts
		}
		return struct{}{}, err
	}
	return struct{}{}, nil
}

// withGlueBody sends body in place of what the SDK makes of an input.
func withGlueBody(body []byte) func(*glue.Options) {
	replace := middleware.SerializeMiddlewareFunc("RawBody", func(
		ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler,
	) (middleware.SerializeOutput, middleware.Metadata, error) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("a request of type %T", in.Request)
		}
		req, err := req.SetStream(bytes.NewReader(body))
		if err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, err
		}
		in.Request = req
		return next.HandleSerialize(ctx, in)
	})
	return func(o *glue.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Serialize.Add(replace, middleware.After)
		})
	}
}
