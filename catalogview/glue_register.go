package catalogview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// Register is [Source]'s: BatchCreatePartition, of a hundred at most, and GetPartition
// of those alone that are there, or whose answer was lost. What keeps a request from
// being answered, or refuses it for what it is, ends the others too.
func (g *Glue) Register(ctx context.Context, t *table.Table, all []NewPartition) []Registered {
	done := make([]Registered, len(all))
	r := t.Ref()
	var batch []*newPartition
	for i, p := range all {
		if len(p.Values) != len(t.Keys) || len(p.Values) == 0 {
			done[i].Err = fmt.Errorf("register a partition of %q: %d values for %d keys", about(r), len(p.Values), len(t.Keys))
			continue
		}
		batch = append(batch, &newPartition{NewPartition: p, out: &done[i]})
	}
	if len(batch) == 0 {
		return done
	}
	b := registrationBatch{g: g, t: t, r: r}
	var err error
	if b.descriptor, err = g.descriptorOf(ctx, r); err != nil {
		fail(batch, err)
		return done
	}
	most := glueBatch
	if raw, err := json.Marshal(b.descriptor); err == nil {
		most = min(most, max(1, maxBatchBytes/max(1, len(raw))))
	}
	for chunk := range slices.Chunk(batch, most) {
		if b.failed != nil {
			fail(chunk, b.failed)
			continue
		}
		b.register(ctx, chunk)
	}
	return done
}

func alreadyExists(err error) bool {
	var e *glueError
	return errors.As(err, &e) && e.code == "AlreadyExistsException"
}

// descriptorAge is how long a table's descriptor is taken as it was.
const descriptorAge = 5 * time.Second

// maxDescriptors bounds the descriptors that are kept.
const maxDescriptors = 64

// keptDescriptor is what partitions of a table have, but for the Location. It is not
// changed.
type keptDescriptor struct {
	fields map[string]any
	at     time.Time
}

// descriptorOf returns what partitions of a table have; not to be changed.
func (g *Glue) descriptorOf(ctx context.Context, r table.Ref) (map[string]any, error) {
	g.mu.Lock()
	kept, ok := g.mu.descriptors[r]
	g.mu.Unlock()
	if at := time.Now(); ok && at.Sub(kept.at) < descriptorAge {
		return kept.fields, nil
	}
	at := time.Now()
	element, err := g.getTable(ctx, r)
	if err != nil {
		return nil, err
	}
	fields, err := partitionDescriptor(element)
	if err != nil {
		return nil, fmt.Errorf("register a partition of %q: %w", about(r), err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.descriptors == nil || len(g.mu.descriptors) >= maxDescriptors {
		g.mu.descriptors = make(map[table.Ref]keptDescriptor)
	}
	g.mu.descriptors[r] = keptDescriptor{fields, at}
	return fields, nil
}

// forgetDescriptor has the next registration ask for a table's descriptor: it was
// changed, or the table went.
func (g *Glue) forgetDescriptor(r table.Ref) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.descriptors, r)
}

// partitionDescriptor is a table's storage descriptor as a partition of it has it
// (rules 3 and 15): everything as the table has it, what nobody here knows too.
// The Location is for the caller to add.
func partitionDescriptor(element []byte) (map[string]any, error) {
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
	delete(descriptor, "Location")
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
