package crash_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// upload is a multipart upload in the bucket.
type upload struct{ key, id string }

// sdk is a client past the gate.
func (r *rig) sdk() (context.Context, context.CancelFunc, *s3.Client, string) {
	server, bucket := r.Bucket()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	return ctx, cancel, server.Client(), bucket
}

// beginForeign begins an upload of each name, with a part, as another writer.
func (r *rig) beginForeign(names ...string) {
	r.t.Helper()
	ctx, cancel, client, bucket := r.sdk()
	defer cancel()
	r.endForeign()
	for _, name := range names {
		key := r.Key(name)
		made, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
		if err != nil {
			r.t.Fatal(err)
		}
		_, err = client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &bucket, Key: &key, UploadId: made.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader([]byte("theirs")),
		})
		if err != nil {
			r.t.Fatal(err)
		}
		r.foreign = append(r.foreign, upload{key, *made.UploadId})
	}
}

// endForeign aborts the other writer's uploads of the last round.
func (r *rig) endForeign() {
	r.t.Helper()
	for _, u := range r.foreign {
		r.abort(u)
	}
	r.foreign = nil
}

func (r *rig) abort(u upload) {
	r.t.Helper()
	ctx, cancel, client, bucket := r.sdk()
	defer cancel()
	if _, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &u.key, UploadId: &u.id}); err != nil {
		r.t.Errorf("abort the upload %v: %v", u, err)
	}
}

// uploads are all that are in the bucket.
func (r *rig) uploads() map[upload]bool {
	r.t.Helper()
	ctx, cancel, client, bucket := r.sdk()
	defer cancel()
	found := make(map[upload]bool)
	pages := s3.NewListMultipartUploadsPaginator(client, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, u := range page.Uploads {
			found[upload{aws.ToString(u.Key), aws.ToString(u.UploadId)}] = true
		}
	}
	return found
}

// ownUploads are those that are not the other writer's, which must all be there.
func (r *rig) ownUploads() []upload {
	r.t.Helper()
	all := r.uploads()
	for _, u := range r.foreign {
		if !all[u] {
			r.t.Errorf("another's upload of %s is gone", u.key)
		}
		delete(all, u)
	}
	var own []upload
	for u := range all {
		if u.key == r.spare {
			continue
		}
		own = append(own, u)
	}
	return own
}

// wantUploads asserts that no upload is left but the other writer's, whose parts
// are as they were.
func (r *rig) wantUploads() {
	r.t.Helper()
	var own []upload
	if !within(patience, func() bool { own = r.ownUploads(); return len(own) == 0 }) {
		r.t.Errorf("uploads that the mount began are left: %v; records at the kill: %s; now: %s", own, r.atKill, r.records())
		for _, u := range own {
			r.abort(u) // or every later round fails too
		}
	}
	ctx, cancel, client, bucket := r.sdk()
	defer cancel()
	for _, u := range r.foreign {
		parts, err := client.ListParts(ctx, &s3.ListPartsInput{Bucket: &bucket, Key: &u.key, UploadId: &u.id})
		if err != nil || len(parts.Parts) != 1 {
			r.t.Errorf("another's upload of %s: %v, %v", u.key, parts, err)
		}
	}
}

// forgive takes the uploads away that nobody can know of: CreateMultipartUpload took
// effect, and the mount was never told, or was killed before its record named it, which
// is one at most of a file. No part was sent to them then.
func (r *rig) forgive(killed bool) {
	r.t.Helper()
	records := r.records()
	if killed {
		r.atKill = records
	}
	untold := make(map[string]int) // by key
	for _, u := range r.ownUploads() {
		made, used := r.gate.life(u.id)
		switch {
		case strings.Contains(records, u.id):
			continue
		case made != nil && used == nil && (!made.answered || made.when.After(r.killedAt) && made.when.Before(r.startedAt)):
		case made != nil && used == nil && killed:
			if untold[u.key]++; untold[u.key] > 1 {
				r.t.Errorf("a kill orphaned %d uploads of %s", untold[u.key], u.key)
			}
		case r.atRandom && !killed && made != nil && used == nil && made.when.Before(r.startedAt):
			// Seen once in thousands of kills under load; where each step is known it fails.
			r.t.Logf("an upload of the dead is left, without a part: %v; a record named it at the kill: %v", u, strings.Contains(r.atKill, u.id))
		case killed:
			r.t.Errorf("no record names the upload %v, which met %v and %v", u, made, used)
			continue
		default:
			continue // wantUploads tells
		}
		r.orphaned++
		r.abort(u)
	}
}

// records are all that the staging directory has.
func (r *rig) records() string {
	r.t.Helper()
	var all strings.Builder
	for _, id := range r.writes() {
		raw, err := os.ReadFile(filepath.Join(r.Staged(), id, "write.json"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			r.t.Error(err)
		}
		all.Write(raw)
	}
	return all.String()
}

// life is the request that began an upload, and the first that was about it.
func (g *gate) life(id string) (made, used *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, now := range g.log {
		q := new(request)
		*q = *now
		switch {
		case q.upload != id:
		case q.op == "CreateMultipartUpload":
			made = q
		case used == nil:
			used = q
		}
	}
	return made, used
}
