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
// bytes), objects and directories together. A page is yielded while the next one
// is on its way. A bucket that is not there is [ErrNoBucket], not an empty
// listing. Entries have no Meta.
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
		l := &s3Lister{s3: s, prefix: prefix, opts: opts, yield: yield, tokens: map[string]bool{}}
		if err := l.run(ctx); err != nil {
			yield(Entry{}, err)
		}
	}
}

// s3Lister is one run of List.
type s3Lister struct {
	s3     *S3
	prefix Location
	opts   ListOptions
	yield  func(Entry, error) bool
	count  int
	last   string          // the last directory that was yielded
	tokens map[string]bool // that were followed
}

// listPage is one page as it came.
type listPage struct {
	entries []Entry
	next    string // token of the next page; "": the listing ends
	err     error
}

// run yields page after page, and returns the error that ended it.
func (l *s3Lister) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	page := l.fetch(ctx, "")
	for page.err == nil {
		var next <-chan listPage
		if page.next != "" && !l.enough(len(page.entries)) {
			if l.tokens[page.next] {
				return failS3("list", l.prefix, &storeError{
					sentinel: ErrUnavailable, text: "the store goes round in circles: a continuation token came twice",
				})
			}
			l.tokens[page.next] = true
			next = l.ahead(ctx, page.next)
		}
		goOn := l.emit(page.entries)
		if next == nil {
			return nil
		}
		if !goOn {
			cancel()
		}
		if page = <-next; !goOn {
			return nil
		}
	}
	return page.err
}

// enough: so many more entries are all that was asked for.
func (l *s3Lister) enough(more int) bool { return l.opts.Limit > 0 && l.count+more >= l.opts.Limit }

// ahead fetches a page in the background; the channel must be received from.
func (l *s3Lister) ahead(ctx context.Context, token string) <-chan listPage {
	c := make(chan listPage, 1)
	go func() { c <- l.fetch(ctx, token) }()
	return c
}

// emit yields entries; false: no more are wanted.
func (l *s3Lister) emit(entries []Entry) bool {
	for _, e := range entries {
		if e.Prefix {
			if e.Key == l.last { // on two pages
				continue
			}
			l.last = e.Key
		}
		l.count++
		if !l.yield(e, nil) || l.enough(0) {
			return false
		}
	}
	return true
}

// fetch asks for one page.
func (l *s3Lister) fetch(ctx context.Context, token string) listPage {
	in := &s3.ListObjectsV2Input{
		Prefix: aws.String(l.prefix.Key), EncodingType: types.EncodingTypeUrl, MaxKeys: aws.Int32(maxListPage),
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
	case l.opts.StartAfter != "":
		in.StartAfter = aws.String(l.opts.StartAfter)
	}
	page, err := do(ctx, l.s3, call{op: "list", loc: l.prefix, quick: true},
		func(ctx context.Context, acc access) (listPage, error) {
			in.Bucket = acc.bucket
			out, err := acc.client.ListObjectsV2(ctx, in)
			if err != nil {
				return listPage{}, err
			}
			return l.page(out)
		})
	page.err = err
	return page
}

// page turns an answer into entries.
func (l *s3Lister) page(out *s3.ListObjectsV2Output) (listPage, error) {
	if out.Name == nil && out.KeyCount == nil && out.IsTruncated == nil {
		return listPage{}, badAnswer("an answer that is no listing") // the SDK takes any document
	}
	page := listPage{next: aws.ToString(out.NextContinuationToken)}
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
	for i := range out.Contents {
		key, err := decode(out.Contents[i].Key)
		if err != nil {
			return listPage{}, badAnswer("a key that is not encoded as asked for")
		}
		page.add(l, Entry{Object: l.listed(key, &out.Contents[i])})
	}
	for _, p := range out.CommonPrefixes {
		key, err := decode(p.Prefix)
		if err != nil {
			return listPage{}, badAnswer("a prefix that is not encoded as asked for")
		}
		page.add(l, Entry{Prefix: true, Object: Object{Location: Location{Bucket: l.prefix.Bucket, Key: key}}})
	}
	if len(out.Contents) > 0 && len(out.CommonPrefixes) > 0 {
		slices.SortStableFunc(page.entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	}
	return page, nil
}

// add takes an entry that belongs to the listing. Deeper keys that StartAfter
// lies among are folded into a directory that is not past it.
func (p *listPage) add(l *s3Lister, e Entry) {
	if strings.HasPrefix(e.Key, l.prefix.Key) && e.Key != "" && e.Key > l.opts.StartAfter &&
		(!e.Prefix || e.Key != l.prefix.Key) {
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
