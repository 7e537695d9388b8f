package catalogview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Partitions is [Source]'s. Column schemas are not asked for.
//
// A table of one page is one request. Of a larger one the first page is followed
// by GlueOptions.Segments-1 parallel segments, which hold the first page's
// partitions again: 2501 of them are 10 requests. With a prefix the pages follow
// one another, as an expression narrows them; where the service refuses that
// (it does for all if one partition's value is not of its key's type), the whole
// table is listed and narrowed here. What does not parse is Broken, and logged.
func (g *Glue) Partitions(ctx context.Context, t *table.Table, prefix []string) iter.Seq2[table.Partition, error] {
	return func(yield func(table.Partition, error) bool) {
		l := &partitionListing{g: g, t: t, prefix: prefix, yield: yield, seen: digests{}}
		if err := l.run(ctx); err != nil {
			yield(table.Partition{}, err)
		}
		if l.broken > 0 {
			g.log.WarnContext(ctx, "partitions that can not be used", slog.String("table", about(t.Ref())),
				slog.Int("count", l.broken), slog.String("first", l.first))
		}
	}
}

// partitionListing is one listing of a table's partitions. Only pages are fetched
// in parallel; one goroutine, the caller's, owns it.
type partitionListing struct {
	g      *Glue
	t      *table.Table
	prefix []string
	yield  func(table.Partition, error) bool

	page   int     // bytes of the first page
	seen   digests // by values; emulators answer each segment with all
	broken int
	first  string // why the first of them is
}

// parsedPage is what a page holds.
type parsedPage struct {
	partitions []table.Partition
}

// run lists. The error is to be yielded; nil where the caller has enough.
func (l *partitionListing) run(ctx context.Context) error {
	if expression := glueExpression(l.t.Keys, l.prefix); expression != "" {
		_, err := l.sequence(ctx, partitionQuery{expression: expression})
		if !refusedExpression(err) {
			return err
		}
		l.g.log.DebugContext(ctx, "expression refused: all partitions are listed", slog.String("table", about(l.t.Ref())),
			slog.String("expression", expression), slog.Any("err", err))
	}
	more, err := l.sequence(ctx, partitionQuery{firstOnly: l.g.o.Segments > 1})
	if err != nil || !more {
		return err
	}
	return l.segments(ctx, int32(l.g.o.Segments-1))
}

// refusedExpression says that a listing may succeed without its expression.
func refusedExpression(err error) bool {
	var e *glueError
	return errors.As(err, &e) && (e.code == "InvalidInputException" || e.code == "InvalidStateException")
}

// partitionQuery is what of a table's partitions is asked for.
type partitionQuery struct {
	expression string
	segment    *types.Segment
	firstOnly  bool // no page but the first that holds any
	schemas    bool // with the columns of each
}

// sequence yields the partitions of one sequence of pages; more says that there
// are some behind the first page, which were not asked for.
func (l *partitionListing) sequence(ctx context.Context, q partitionQuery) (more bool, err error) {
	for page, err := range l.g.pages(ctx, l.g.partitionPages(l.t.Ref(), q)) {
		if err != nil {
			return false, err
		}
		if !l.take(l.parse(page.elements)) {
			return false, nil
		}
		if q.firstOnly && len(page.elements) > 0 && page.token != "" {
			l.page = page.size()
			return true, nil
		}
	}
	return false, nil
}

// maxPagesHeld bounds the pages that are read at once, in bytes: a service that
// sends the columns though they were not asked for sends some MiB a page.
const maxPagesHeld = 12 << 20

// segments yields the partitions of all segments of a table.
func (l *partitionListing) segments(ctx context.Context, total int32) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parsed := make(chan parsedPage)
	slots := make(chan struct{}, max(1, min(int(total), maxPagesHeld/max(1, l.page))))
	group, gctx := errgroup.WithContext(ctx)
	for i := range total {
		q := partitionQuery{segment: &types.Segment{SegmentNumber: i, TotalSegments: &total}}
		group.Go(func() error {
			slots <- struct{}{} // who holds one ends with gctx
			defer func() { <-slots }()
			return l.fetch(gctx, q, parsed)
		})
	}
	done := make(chan error, 1)
	go func() {
		done <- group.Wait()
		close(parsed)
	}()
	enough := false
	for page := range parsed {
		if !enough && !l.take(page) {
			enough = true
			cancel()
		}
	}
	if err := <-done; !enough {
		return err
	}
	return nil
}

// fetch sends the pages of a query to parsed.
func (l *partitionListing) fetch(ctx context.Context, q partitionQuery, parsed chan<- parsedPage) error {
	for page, err := range l.g.pages(ctx, l.g.partitionPages(l.t.Ref(), q)) {
		if err != nil {
			return err
		}
		select {
		case parsed <- l.parse(page.elements):
		case <-ctx.Done():
			return fmt.Errorf("list partitions of %q: %w", about(l.t.Ref()), ctx.Err())
		}
	}
	return nil
}

// parse reads a page, and drops what the prefix does not want. It keeps nothing
// of the page's bytes.
func (l *partitionListing) parse(page [][]byte) parsedPage {
	var out parsedPage
	for _, element := range page {
		p, err := l.t.ParseGluePartition(element)
		switch {
		case err != nil:
			p.Broken = err.Error()
			out.partitions = append(out.partitions, p)
		case len(p.Values) >= len(l.prefix) && slices.Equal(p.Values[:len(l.prefix)], l.prefix):
			out.partitions = append(out.partitions, p)
		}
	}
	return out
}

// take yields what was not yielded yet; false: the caller has enough.
func (l *partitionListing) take(page parsedPage) bool {
	for _, p := range page.partitions {
		if !l.seen.add(p.Values...) {
			continue
		}
		if p.Broken != "" {
			if l.broken++; l.first == "" {
				l.first = p.Broken
			}
		}
		if !l.yield(p, nil) {
			return false
		}
	}
	return true
}

// partitionPages is the listing of a table's partitions.
func (g *Glue) partitionPages(r table.Ref, q partitionQuery) glueListing {
	return glueListing{
		glueCall: glueCall{op: "GetPartitions", about: about(r)}, member: "Partitions", most: gluePartitionPage,
		send: func(ctx context.Context, api *glue.Client, token *string, most int32) error {
			in := &glue.GetPartitionsInput{
				CatalogId: g.catalog(r.CatalogID), DatabaseName: aws.String(r.Database), TableName: aws.String(r.Name),
				NextToken: token, MaxResults: &most, Segment: q.segment,
			}
			if !q.schemas {
				in.ExcludeColumnSchema = aws.Bool(true)
			}
			if q.expression != "" {
				in.Expression = &q.expression
			}
			_, err := api.GetPartitions(ctx, in)
			return err
		},
	}
}

// Partition is [Source]'s: by one request.
func (g *Glue) Partition(ctx context.Context, t *table.Table, values []string) (table.Partition, Raw, error) {
	call := glueCall{op: "GetPartition", about: about(t.Ref()) + ": " + strings.Join(values, ", ")}
	element, err := g.getPartition(ctx, call, t, values)
	if err != nil {
		return table.Partition{}, Raw{}, err
	}
	p, err := t.ParseGluePartition(element)
	if err != nil {
		return p, newGlueRaw("Partition", element), call.fail(err)
	}
	return p, newGlueRaw("Partition", element), nil
}

// getPartition returns a partition's entry; ErrNotExist where the answer is of another.
func (g *Glue) getPartition(ctx context.Context, call glueCall, t *table.Table, values []string) ([]byte, error) {
	r := t.Ref()
	if len(values) != len(t.Keys) || len(values) == 0 {
		return nil, call.fail(objectstore.ErrNotExist)
	}
	element, err := askGlue(ctx, g, call, func(ctx context.Context, api *glue.Client) error {
		_, err := api.GetPartition(ctx, &glue.GetPartitionInput{
			CatalogId: g.catalog(r.CatalogID), DatabaseName: aws.String(r.Database), TableName: aws.String(r.Name), PartitionValues: values,
		})
		return err
	}, readMember("Partition"))
	if err != nil {
		return nil, err
	}
	if got, ok := jsonTexts(member(element, "Values")); ok && !slices.Equal(got, values) {
		return nil, call.fail(fmt.Errorf("the catalog has it as %.300q: %w", got, objectstore.ErrNotExist))
	}
	return element, nil
}

// PartitionLines is [Source]'s: one page at a time, with all that is there. What
// pages repeat is told by its values, as in Partitions.
func (g *Glue) PartitionLines(ctx context.Context, t *table.Table) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var line bytes.Buffer
		seen := digests{}
		for page, err := range g.pages(ctx, g.partitionPages(t.Ref(), partitionQuery{schemas: true})) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, element := range page.elements {
				values, ok := jsonTexts(member(element, "Values"))
				if ok && !seen.add(values...) {
					continue
				}
				line.Reset()
				lineJSON(&line, element)
				if !yield(line.Bytes(), nil) {
					return
				}
			}
		}
	}
}
