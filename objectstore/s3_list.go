package objectstore

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// maxListPage is how many entries a page holds, at most.
const maxListPage = 1000

// List is [Store]'s. Keys come in the store's order (of S3: that of their UTF-8
// bytes), objects and directories together. Pages are fetched ahead of the caller, of
// a large prefix several key ranges at once: see s3Lister. A bucket that is not there
// is [ErrNoBucket], not an empty listing. Entries have no Meta.
func (s *S3) List(ctx context.Context, prefix Location, opts ListOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		err := checkS3Prefix(prefix.Key)
		if err == nil && prefix.Key != "" && !strings.HasSuffix(prefix.Key, "/") {
			err = ErrName
		}
		if err != nil {
			yield(Entry{}, failS3("list", prefix, err))
			return
		}
		if err := newLister(s, prefix, opts, yield).run(ctx); err != nil {
			yield(Entry{}, err)
		}
	}
}

// listPage is one page as it came.
type listPage struct {
	entries []Entry
	next    string // token of the next page; "": the listing ends
	err     error

	ordered bool // keys came in the order of their bytes
	before  bool // keys came that the request was to skip
	again   bool // it was asked for more than once
	took    time.Duration
}

// fetch asks for one page: the one of token, or the first of the keys after.
func (l *s3Lister) fetch(ctx context.Context, after, token string) listPage {
	in := &s3.ListObjectsV2Input{
		Prefix: aws.String(l.prefix.Key), EncodingType: types.EncodingTypeUrl, MaxKeys: aws.Int32(l.pageSize),
		RequestPayer: l.s3.payer(), ExpectedBucketOwner: l.s3.owner(),
	}
	if l.opts.Delimiter {
		in.Delimiter = aws.String("/")
	}
	if l.opts.Limit > 0 {
		in.MaxKeys = aws.Int32(int32(min(l.opts.Limit, maxListPage))) //nolint:gosec // at most maxListPage
	}
	switch {
	case token != "":
		in.ContinuationToken = aws.String(token)
	case after != "":
		in.StartAfter = aws.String(after)
	}
	asked, begin := 0, time.Now()
	page, err := do(ctx, l.s3, call{op: "list", loc: l.prefix, quick: true},
		func(ctx context.Context, acc access) (listPage, error) {
			asked++
			in.Bucket = acc.bucket
			out, err := acc.client.ListObjectsV2(ctx, in)
			if err != nil {
				return listPage{}, err
			}
			return l.page(out, after)
		})
	page.err, page.again, page.took = err, asked > 1, time.Since(begin)
	return page
}

// page turns an answer into entries, of which those up to after do not belong.
func (l *s3Lister) page(out *s3.ListObjectsV2Output, after string) (listPage, error) {
	if out.Name == nil && out.KeyCount == nil && out.IsTruncated == nil {
		return listPage{}, badAnswer("an answer that is no listing") // the SDK takes any document
	}
	page := listPage{next: aws.ToString(out.NextContinuationToken), ordered: true}
	switch truncated := aws.ToBool(out.IsTruncated); {
	case truncated && page.next == "":
		return listPage{}, badAnswer("a listing that is cut short without a token")
	case !truncated && out.IsTruncated != nil:
		page.next = ""
	}
	decode := func(s *string) (string, error) { return aws.ToString(s), nil }
	if out.EncodingType == types.EncodingTypeUrl {
		decode = func(s *string) (string, error) { return url.QueryUnescape(aws.ToString(s)) }
	}
	page.entries = make([]Entry, 0, len(out.Contents)+len(out.CommonPrefixes))
	last := ""
	for i := range out.Contents {
		key, err := decode(out.Contents[i].Key)
		if err != nil {
			return listPage{}, badAnswer("a key that is not encoded as asked for")
		}
		page.ordered = page.ordered && (i == 0 || key > last)
		last = key
		page.add(l, Entry{Object: l.listed(key, &out.Contents[i])}, after)
	}
	last = ""
	for i, p := range out.CommonPrefixes {
		key, err := decode(p.Prefix)
		if err != nil {
			return listPage{}, badAnswer("a prefix that is not encoded as asked for")
		}
		page.ordered = page.ordered && (i == 0 || key > last)
		last = key
		page.add(l, Entry{Prefix: true, Object: Object{Location: Location{Bucket: l.prefix.Bucket, Key: key}}}, after)
	}
	if len(out.Contents) > 0 && len(out.CommonPrefixes) > 0 {
		slices.SortStableFunc(page.entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	}
	return page, nil
}

// add takes an entry that belongs to the listing. Deeper keys that StartAfter
// lies among are folded into a directory that is not past it.
func (p *listPage) add(l *s3Lister, e Entry, after string) {
	switch {
	case !strings.HasPrefix(e.Key, l.prefix.Key) || e.Key == "" || e.Prefix && e.Key == l.prefix.Key:
	case e.Key <= after:
		p.before = true
	default:
		p.entries = append(p.entries, e)
	}
}

// listed is an object as a listing tells it. Times there may have fractions
// that headers have not: one version has one time.
func (l *s3Lister) listed(key string, o *types.Object) Object {
	return Object{
		Location: Location{Bucket: l.prefix.Bucket, Key: key},
		Size:     aws.ToInt64(o.Size), ETag: unquoteETag(o.ETag), ModTime: aws.ToTime(o.LastModified).Truncate(time.Second),
	}
}
