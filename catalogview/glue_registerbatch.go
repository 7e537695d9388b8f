package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// glueBatch is how many partitions BatchCreatePartition takes, and maxBatchBytes about
// how much is sent in one: each has all the columns of the table.
const (
	glueBatch     = 100
	maxBatchBytes = 4 << 20
)

// newPartition is one that is being registered, and what becomes of it.
type newPartition struct {
	NewPartition

	out *Registered
}

func fail(all []*newPartition, err error) {
	for _, p := range all {
		p.out.Err = err
	}
}

// registrationBatch registers partitions of a table.
type registrationBatch struct {
	g          *Glue
	t          *table.Table
	r          table.Ref
	descriptor map[string]any // but for the Location
	failed     error          // why no further request is worth it
}

// register registers what one request takes.
func (b *registrationBatch) register(ctx context.Context, chunk []*newPartition) {
	left, err := b.create(ctx, chunk)
	switch {
	case err == nil:
	case refusedAsItIs(err) && len(left) > 1: // by one of them, and which is not told
		half := len(left) / 2
		b.register(ctx, left[:half])
		b.register(ctx, left[half:])
		chunk = slices.DeleteFunc(slices.Clone(chunk), func(p *newPartition) bool { return slices.Contains(left, p) })
	default:
		fail(left, err)
		if errors.Is(err, objectstore.ErrNotExist) {
			b.g.forgetDescriptor(b.r)
		}
		if errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrPermission) || errors.Is(err, objectstore.ErrUnavailable) {
			b.failed = err
		}
	}
	b.look(ctx, chunk)
}

// refusedAsItIs says that a request was refused for what is in it.
func refusedAsItIs(err error) bool {
	var e *glueError
	return errors.As(err, &e) && (e.code == "InvalidInputException" || e.code == "ValidationException")
}

// create makes one request, again for what may pass. What was told of one is in its
// out; err is of those that are left.
func (b *registrationBatch) create(ctx context.Context, left []*newPartition) ([]*newPartition, error) {
	send := func(ctx context.Context, api *glue.Client) error {
		body, err := b.body(left)
		if err != nil {
			return err
		}
		_, err = api.BatchCreatePartition(ctx, &glue.BatchCreatePartitionInput{
			DatabaseName: aws.String(b.r.Database), TableName: aws.String(b.r.Name), PartitionInputList: []types.PartitionInput{},
		}, withGlueBody(body))
		return err
	}
	_, err := askGlue(ctx, b.g, glueCall{op: "BatchCreatePartition", about: about(b.r)}, send, func(body []byte) (struct{}, error) {
		var passing error
		var err error
		left, passing, err = sortOut(left, body)
		if err == nil {
			err = passing
		}
		return struct{}{}, err
	})
	return left, err
}

// body is a request. The SDK's structs leave out false and 0, and what they do not
// know: it is made here.
func (b *registrationBatch) body(all []*newPartition) ([]byte, error) {
	list := make([]any, len(all))
	for i, p := range all {
		descriptor := maps.Clone(b.descriptor)
		descriptor["Location"] = p.Location
		list[i] = map[string]any{"Values": p.Values, "StorageDescriptor": descriptor}
	}
	request := map[string]any{"DatabaseName": b.r.Database, "TableName": b.r.Name, "PartitionInputList": list}
	if id := b.g.catalog(b.r.CatalogID); id != nil {
		request["CatalogId"] = *id
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("register partitions of %q: %w", about(b.r), err)
	}
	return body, nil
}

// sortOut takes a good answer, in which errors of some may be: left are those to be
// asked for again, passing is the error of the first of them.
func sortOut(all []*newPartition, body []byte) (left []*newPartition, passing, err error) {
	list := member(body, "Errors")
	if list != nil && list[0] != '[' {
		return all, nil, oddAnswer("Errors in the answer is no list")
	}
	failed := make(map[string]*glueError)
	for e := range elements(list) {
		values, ok := jsonTexts(member(e, "PartitionValues"))
		if !ok && len(all) == 1 {
			values = all[0].Values
		}
		failed[valuesKey(values)] = errorInside(member(e, "ErrorDetail"))
	}
	told := 0
	for _, p := range all {
		e, ok := failed[valuesKey(p.Values)]
		switch {
		case !ok:
			p.out.Location, p.out.Err = p.Location, nil
			continue
		case e.passing:
			left = append(left, p)
			if passing == nil {
				passing = e
			}
		default:
			p.out.Err = glueCall{op: "BatchCreatePartition", about: fmt.Sprintf("%.300q", p.Values)}.fail(e)
		}
		told++
	}
	if told < len(failed) { // of which, nobody knows
		return all, nil, oddAnswer("an error in the answer is of no partition that was asked for")
	}
	return left, passing, nil
}

// errorInside is an error in a good answer.
func errorInside(detail []byte) *glueError {
	err := &glueError{code: printable(jsonText(member(detail, "ErrorCode"))), text: printable(jsonText(member(detail, "ErrorMessage")))}
	err.sentinel, err.passing, _ = codeMeaning(err.code)
	if err.code == "InternalServiceException" || err.code == "" {
		err.sentinel, err.passing, err.attempts = objectstore.ErrUnavailable, true, glueServerAttempts
	}
	return err
}

// look asks for those that are there, and for those of which a request may have taken
// effect that was not answered. While the catalog does not answer one is asked for.
func (b *registrationBatch) look(ctx context.Context, chunk []*newPartition) {
	var open []*newPartition
	for _, p := range chunk {
		if alreadyExists(p.out.Err) || errors.Is(p.out.Err, objectstore.ErrUnavailable) {
			open = append(open, p)
		}
	}
	if len(open) == 0 || b.lookAt(ctx, open[0]) {
		return
	}
	inParallel(len(open)-1, func(i int) { b.lookAt(ctx, open[1+i]) })
}

// lookAt asks for one; silent: the catalog did not answer.
func (b *registrationBatch) lookAt(ctx context.Context, p *newPartition) (silent bool) {
	there, _, err := b.g.Partition(ctx, b.t, p.Values)
	switch {
	case err == nil:
		p.out.Location, p.out.Err = there.Location, nil
	case alreadyExists(p.out.Err):
		p.out.Err = err
	}
	return errors.Is(err, objectstore.ErrUnavailable) || ctx.Err() != nil
}
