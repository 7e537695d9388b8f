package catalogview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// bucketResolver resolves the locations of manifests in S3, and those of Glue. Keys are taken byte
// for byte: nothing is decoded, and "//" stays.
type bucketResolver struct {
	roots    []objectstore.Location // Key "" or ending in "/"
	rootless bool                   // none of them is the catalog's own
	any      bool                   // every bucket is allowed
}

// bucketScheme says that a scheme, in lower case, is one that S3 goes by.
func bucketScheme(scheme string) bool { return scheme == "s3" || scheme == "s3a" || scheme == "s3n" }

func bucketRoots(uris []string) []objectstore.Location {
	roots := make([]objectstore.Location, 0, len(uris))
	for _, uri := range uris {
		scheme, rest := splitScheme(uri)
		loc, ok := bucketKey(rest)
		if bucketScheme(scheme) && ok {
			roots = append(roots, loc)
		}
	}
	return roots
}

// bucketKey reads what follows the scheme as a directory.
func bucketKey(rest string) (objectstore.Location, bool) {
	rest, ok := strings.CutPrefix(rest, "//")
	bucket, key, _ := strings.Cut(rest, "/")
	return objectstore.Location{Bucket: bucket, Key: directoryKey(key)}, ok && bucket != ""
}

// directoryKey is the key of the directory of a name, with or without its "/".
func directoryKey(key string) string {
	if key == "" || strings.HasSuffix(key, "/") {
		return key
	}
	return key + "/"
}

// resolve takes s3:, s3a: and s3n: URIs, whatever the case of the scheme, and
// paths relative to the first root.
func (r bucketResolver) resolve(location, secret string) (place, *refusal) {
	loc, ref := r.locate(location)
	if ref != nil {
		return place{}, ref
	}
	shown := maskUserinfo(location)
	if strings.Contains(loc.Key, "\x00") {
		return place{}, denied("location %.300q has a NUL byte", shown)
	}
	for _, c := range strings.Split(loc.Key, "/") {
		if c == "." || c == ".." {
			return place{}, denied("location %.300q has a component %q", shown, c)
		}
	}
	if !r.any && !slices.ContainsFunc(r.roots, func(root objectstore.Location) bool {
		return loc.Bucket == root.Bucket && strings.HasPrefix(loc.Key, root.Key)
	}) {
		ref := denied("location %.300q lies outside the catalog's root and the allowed locations; --allow-location adds one", shown)
		if r.rootless {
			ref = denied("location %.300q lies outside the allowed locations; --allow-location adds one", shown)
		}
		if shown == location { // else it names no bucket that could be allowed
			ref.outside = uri(loc)
		}
		return place{}, ref
	}
	if secret != "" {
		loc.Bucket = secret + "@" + loc.Bucket
	}
	return place{Location: loc}, nil
}

func (r bucketResolver) locate(location string) (objectstore.Location, *refusal) {
	var none objectstore.Location
	scheme, rest := splitScheme(location)
	location = maskUserinfo(location) // what is left to do with it is to show it
	switch {
	case bucketScheme(scheme):
		loc, ok := bucketKey(rest)
		// An "@" would name credentials that the entry has no right to.
		if !ok || strings.Contains(loc.Bucket, "@") {
			return none, denied("location %.300q names no bucket", location)
		}
		return loc, nil
	case r.rootless && (scheme == "" || scheme == "file"):
		return none, &refusal{class: table.ClassUnsupported, reason: fmt.Sprintf("location %.300q is no S3 location; what it names is not served", location)}
	case scheme == "file", scheme == "" && strings.HasPrefix(rest, "/"):
		return none, &refusal{class: table.ClassUnsupported, reason: fmt.Sprintf("location %.300q is a local path; the catalog is in a bucket, and so are its tables", location)}
	case scheme != "":
		return none, &refusal{class: table.ClassUnsupported, reason: fmt.Sprintf("location %.300q: scheme %.40s is not supported", location, scheme)}
	case len(r.roots) == 0:
		return none, denied("location %.300q is relative to no root", location)
	}
	root := r.roots[0]
	root.Key += directoryKey(rest)
	return root, nil
}

// plainBucket is a bucket's own name, without the credentials for it.
func plainBucket(bucket string) string { return bucket[strings.LastIndexByte(bucket, '@')+1:] }

func uri(loc objectstore.Location) string { return "s3://" + plainBucket(loc.Bucket) + "/" + loc.Key }

func (r bucketResolver) show(p place, below []string) string { return uri(p.down(below)) }

func (r bucketResolver) inSQE(p place, below []string) bool {
	if r.rootless || len(r.roots) == 0 || plainBucket(p.Bucket) != r.roots[0].Bucket {
		return false
	}
	rest, ok := strings.CutPrefix(p.down(below).Key, r.roots[0].Key)
	return ok && slices.Contains(strings.Split(rest, "/"), sqeDirectory)
}

func (r bucketResolver) oddity(p place, database, name string) string {
	if r.rootless || len(r.roots) == 0 || plainBucket(p.Bucket) != r.roots[0].Bucket {
		return ""
	}
	root := r.roots[0].Key
	switch {
	case r.inSQE(p, nil):
		return "the location lies in a manifest's own directory"
	case p.Key == root:
		return "the location is the catalog's root"
	case strings.HasPrefix(root+database+"/"+name+"/"+sqeDirectory+"/", p.Key):
		return "the location holds the table's own manifest directory"
	}
	return ""
}
