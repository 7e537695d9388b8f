package objectstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
)

// Parts of a copy.
const (
	copyPart     = 256 << 20
	copyParallel = 8
	abortTime    = 15 * time.Second
)

// partSize is that of each part but the last of a copy of size bytes. A limit
// that a test lowered lowers it too.
func (s *S3) partSize(size int64) int64 {
	return max(min(copyPart, max(s.copyMax(), MinPartSize)), (size+MaxParts-1)/MaxParts)
}

// parts copies by a multipart upload, which is aborted on any error; who was told of
// it may do so again.
func (d *duplicate) parts(ctx context.Context) (Object, error) {
	u, err := d.begin(ctx)
	if err != nil {
		return Object{}, err
	}
	var o Object
	if d.opts.Begun != nil {
		err = d.opts.Begun(u)
	}
	if err == nil {
		o, err = d.fill(ctx, u)
	}
	if err == nil {
		return o, nil
	}
	if left := d.abort(ctx, u); left != nil {
		d.s.log.LogAttrs(ctx, slog.LevelWarn, "an upload is left unfinished in the store", slog.String("upload", u.ID), slog.Any("err", left))
	}
	return Object{}, err
}

// begin begins the upload, with all that the source's headers say.
func (d *duplicate) begin(ctx context.Context) (Upload, error) {
	in := &s3.CreateMultipartUploadInput{
		Metadata: d.head.Metadata, ContentType: d.head.ContentType, ContentEncoding: d.head.ContentEncoding,
		ContentDisposition: d.head.ContentDisposition, ContentLanguage: d.head.ContentLanguage, CacheControl: d.head.CacheControl,
	}
	if d.opts.Meta != nil {
		in.Metadata = encodeMeta(d.opts.Meta)
	}
	return d.s.createUpload(ctx, d.dst, in)
}

// fill copies the parts and completes the upload.
func (d *duplicate) fill(ctx context.Context, u Upload) (Object, error) {
	honoured := d.s.honoursSource(ctx, copiedPart{s: d.s, upload: u, number: 1, src: d.src})
	parts, err := d.copyParts(ctx, u)
	if err != nil {
		return Object{}, err
	}
	if !honoured {
		if _, err = d.look(ctx); err != nil {
			return Object{}, err
		}
	}
	c, err := newCompletion(d.s, u, parts)
	if err != nil {
		return Object{}, failS3("complete", d.dst, err)
	}
	c.meta = decodeMeta(d.head.Metadata)
	return c.do(ctx, d.opts.Cond, d.opts.Meta[MetaWriteID])
}

// copyParts copies all parts, several at a time. After one that failed none begins;
// those under way are waited for, since a part that the store is still making would
// outlive the abort.
func (d *duplicate) copyParts(ctx context.Context, u Upload) ([]Part, error) {
	size := d.s.partSize(d.src.Size)
	parts := make([]Part, (d.src.Size+size-1)/size)
	g, well := errgroup.WithContext(ctx)
	g.SetLimit(copyParallel)
	for i := range parts {
		g.Go(func() (err error) {
			if well.Err() != nil {
				return nil //nolint:nilerr // the group has the cause
			}
			p := copiedPart{s: d.s, upload: u, number: i + 1, src: d.src, off: int64(i) * size}
			p.n = min(size, d.src.Size-p.off)
			parts[i], err = p.do(ctx)
			return err
		})
	}
	return parts, g.Wait()
}

// abort frees what a failed copy left. It has a little time of its own.
func (d *duplicate) abort(ctx context.Context, u Upload) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	return d.s.AbortUpload(ctx, u)
}
