package objectstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"
)

const (
	deleteBatch    = 1000 // keys in one DeleteObjects
	deleteParallel = 4    // batches under way
)

// batch is a part of a Delete: locations of one bucket, by their index.
type batch struct {
	bucket string
	index  []int
	done   chan struct{} // closed when the outcomes are there
}

// Delete implements [Store]. Locations are yielded in their order, and up to
// 4000 keys beyond the one that was yielded may be gone by then.
func (s *S3) Delete(ctx context.Context, locs []Location) iter.Seq2[Location, error] {
	return func(yield func(Location, error) bool) {
		bounded, cancel := context.WithCancel(ctx)
		outcomes := make([]error, len(locs))
		batches, of := batchesOf(locs)
		var g errgroup.Group
		g.SetLimit(deleteParallel + 1) // and the one that starts them
		defer func() { cancel(); _ = g.Wait() }()
		g.Go(func() error {
			for _, b := range batches {
				g.Go(func() error {
					defer close(b.done)
					s.deleteBatch(bounded, b, locs, outcomes)
					return nil
				})
			}
			return nil
		})
		for i, loc := range locs {
			<-of[i].done
			if !yield(loc, outcomes[i]) {
				return
			}
		}
	}
}

// deleteBatch removes a batch and notes the outcomes.
func (s *S3) deleteBatch(ctx context.Context, b *batch, locs []Location, outcomes []error) {
	if len(b.index) == 1 {
		i := b.index[0]
		outcomes[i] = s.deleteOne(ctx, locs[i], "")
		return
	}
	for _, i := range b.index {
		outcomes[i] = checkKeyOf("delete", locs[i])
	}
	told, err := s.deleteMany(ctx, b, locs, outcomes)
	for _, i := range b.index {
		if outcomes[i] != nil {
			continue
		}
		switch known, ok := told[locs[i].Key]; {
		case err != nil && !noMany(err):
			outcomes[i] = failFor(ctx, "delete", locs[i], errors.Unwrap(err)) // it names the bucket alone
		case ok && errors.Is(known, ErrPermission), ok && known == nil:
			outcomes[i] = failS3("delete", locs[i], known)
		default: // what may pass is asked again, by itself; so is what was not told of
			outcomes[i] = s.deleteOne(ctx, locs[i], "")
		}
	}
}

// noMany tells whether the store has no DeleteObjects.
func noMany(err error) bool {
	status, _ := answerOf(err)
	return status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

func checkKeyOf(op string, loc Location) error { return failS3(op, loc, checkS3Key(loc.Key)) }

// deleteMany makes one DeleteObjects of what has no outcome yet, and tells those
// of its answer by key.
func (s *S3) deleteMany(ctx context.Context, b *batch, locs []Location, outcomes []error) (map[string]error, error) {
	in := &s3.DeleteObjectsInput{
		Delete: &types.Delete{Quiet: aws.Bool(false)}, RequestPayer: s.payer(), ExpectedBucketOwner: s.owner(),
	}
	for _, i := range b.index {
		if outcomes[i] == nil {
			in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: aws.String(locs[i].Key)})
		}
	}
	if len(in.Delete.Objects) == 0 {
		return nil, nil
	}
	c := call{op: "delete", loc: Location{Bucket: b.bucket}}
	return do(ctx, s, c, func(ctx context.Context, acc access) (map[string]error, error) {
		in.Bucket = acc.bucket
		out, err := acc.client.DeleteObjects(ctx, in, s.md5)
		if err != nil {
			return nil, err
		}
		told := make(map[string]error, len(in.Delete.Objects))
		for _, d := range out.Deleted {
			told[aws.ToString(d.Key)] = nil
		}
		for _, e := range out.Errors {
			told[aws.ToString(e.Key)] = keyError(e)
		}
		return told, nil
	})
}

// keyError is what DeleteObjects tells of one key.
func keyError(e types.Error) error {
	code := aws.ToString(e.Code)
	sentinel, passing, _ := meaning(code)
	switch {
	case errors.Is(sentinel, ErrNotExist):
		return nil
	case sentinel == nil:
		sentinel, passing = ErrUnavailable, true
	}
	return &storeError{sentinel: sentinel, code: printable(code), text: printable(aws.ToString(e.Message)), passing: passing}
}

// md5 adds Content-MD5, which stores that are not AWS may insist on.
func (s *S3) md5(o *s3.Options) {
	if !s.isAWS() {
		o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
	}
}

// deleteOne removes an object; only the version match, if that is not "", and if the
// store does not refuse to know conditions.
func (s *S3) deleteOne(ctx context.Context, loc Location, match string) error {
	if err := checkKeyOf("delete", loc); err != nil {
		return err
	}
	in := &s3.DeleteObjectInput{Key: aws.String(loc.Key), RequestPayer: s.payer(), ExpectedBucketOwner: s.owner()}
	if match != "" && !s.conditionsRefused() {
		in.IfMatch = quoteETag(match)
	}
	_, err := do(ctx, s, call{op: "delete", loc: loc}, func(ctx context.Context, acc access) (struct{}, error) {
		in.Bucket = acc.bucket
		_, err := acc.client.DeleteObject(ctx, in)
		if _, code := answered(ctx, err); code == "NoSuchKey" {
			err = nil
		}
		if in.IfMatch != nil && !s.isAWS() && statusOf(ctx) == http.StatusNotImplemented {
			in.IfMatch = nil // it was looked at
			err = &storeError{sentinel: ErrUnavailable, text: "the store may know no conditions on deletes", passing: true}
		}
		return struct{}{}, err
	})
	return err
}

var _ VersionDeleter = (*S3)(nil)

// DeleteVersion is [VersionDeleter]'s. A store that is not AWS may delete
// whatever is there: it is looked at before.
func (s *S3) DeleteVersion(ctx context.Context, o Object) error {
	if err := checkKeyOf("delete", o.Location); err != nil {
		return err
	}
	if !s.isAWS() {
		if gone, err := s.isGone(ctx, o); gone || err != nil {
			return err
		}
	}
	err := s.deleteOne(ctx, o.Location, o.ETag)
	if errors.Is(err, ErrChanged) {
		if gone, _ := s.isGone(ctx, o); gone {
			return nil
		}
	}
	return err
}

// isGone tells whether nothing is where o was; ErrChanged if another version is.
func (s *S3) isGone(ctx context.Context, o Object) (bool, error) {
	now, err := s.Stat(ctx, o.Location)
	switch {
	case errors.Is(err, ErrNotExist):
		return true, nil
	case err == nil && now.ETag != o.ETag:
		return false, failS3("delete", o.Location, fmt.Errorf("version %s is there: %w", printable(now.ETag), ErrChanged))
	}
	return false, err
}

// batchesOf groups locations for DeleteObjects, and tells the batch of each.
func batchesOf(locs []Location) (batches []*batch, of []*batch) {
	of = make([]*batch, len(locs))
	open := map[string]*batch{}
	for i, loc := range locs {
		b := open[loc.Bucket]
		if b == nil || len(b.index) == deleteBatch || !inXML(loc.Key) {
			b = &batch{bucket: loc.Bucket, done: make(chan struct{})}
			batches = append(batches, b)
		}
		if inXML(loc.Key) {
			open[loc.Bucket] = b
		}
		b.index = append(b.index, i)
		of[i] = b
	}
	return batches, of
}

// inXML tells whether a key survives the XML of DeleteObjects. Control bytes
// can not be written there: what stands for them could be another key.
func inXML(key string) bool {
	for _, r := range key {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == 0x2028 || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return true
}
