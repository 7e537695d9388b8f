package settings

import (
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// remote: a lake in S3, and how long a store may take.
func remote() []Setting {
	all := []Setting{
		text("profile", "NAME", "analytics", "profile of the AWS configuration files whose credentials are used (default: the SDK's chain)",
			func(v *Values) *string { return &v.Profile }),
		pattern("region", "REGION", "eu-central-1", "region of the bucket (default: found by itself), or of the Glue catalog",
			`[a-z][a-z0-9-]*`, "a region such as eu-central-1", func(v *Values) *string { return &v.Region }),
		{
			Name: "endpoint-url", Type: "URL", Usage: "a store that speaks S3, instead of AWS: http://127.0.0.1:9000",
			Example: "http://127.0.0.1:9000",
			set:     func(v *Values, raw string) error { return setEndpoint(&v.EndpointURL, raw) },
			get:     func(v *Values) any { return orNone(v.EndpointURL) },
		},
		toggle("path-style", "name the bucket in the path of a request, not in its host", func(v *Values) *bool { return &v.PathStyle }),
		toggle("no-sign-request", "send no credentials, as a public bucket asks for none", func(v *Values) *bool { return &v.NoSignRequest }),
		toggle("requester-pays", "agree to pay for the requests", func(v *Values) *bool { return &v.RequesterPays }),
		choice("sse", "server-side encryption of what is written (default: the bucket's)", "", []string{"AES256", "aws:kms", "aws:kms:dsse"},
			func(v *Values) *string { return &v.SSE }),
		text("sse-kms-key-id", "KEY", "alias/lake", "KMS key of --sse=aws:kms and aws:kms:dsse", func(v *Values) *string { return &v.SSEKMSKeyID }),
		pattern("storage-class", "CLASS", "STANDARD_IA", "storage class of what is written",
			`[A-Z][A-Z0-9_]*`, "a class such as STANDARD_IA", func(v *Values) *string { return &v.StorageClass }),
		pattern("expected-bucket-owner", "ACCOUNT", "123456789012", "refuse buckets of another AWS account",
			`[0-9]{12}`, "the 12 digits of an account", func(v *Values) *string { return &v.ExpectedBucketOwner }),
		{
			Name: "ca-bundle", Type: "FILE", Usage: "certificates, in PEM, to trust for HTTPS beside the system's (default: AWS_CA_BUNDLE)",
			Example: "/etc/ssl/certs/store.pem",
			set:     func(v *Values, raw string) error { return setFile(&v.CABundle, raw) },
			get:     func(v *Values) any { return orNone(v.CABundle) },
		},
		choice("checksum", "checksum sent with what is written; none for stores that refuse it", "crc32c",
			[]string{"crc32c", "crc64nvme", "sha256", "none"}, func(v *Values) *string { return &v.Checksum }),
		partSize(),
		{
			Name: "cache-dir", Type: "DIR", Usage: "keep what was read on a disk too, in this directory: of this mount alone (default: memory alone)",
			Example: "/var/cache/lakefs-mount",
			set:     func(v *Values, raw string) error { return setDirectory(&v.CacheDir, raw) },
			get:     func(v *Values) any { return orNone(v.CacheDir) },
		},
		sizeFrom(16<<20, "cache-size", "how much of --cache-dir's disk is used, from 16MiB on; the least recently read goes first (default: a tenth of the disk)", "",
			func(v *Values) *int64 { return &v.CacheSize }),
	}
	for i := range all {
		all[i].S3 = true
	}
	return all
}

// What a part of an upload may be, in bytes: S3's own limits.
const (
	minPartSize = 5 << 20
	maxPartSize = 5 << 30
)

// partSize is the size of each part, for stores that want them equal. 0 is how a
// flag takes back what a settings file says.
func partSize() Setting {
	return Setting{
		Name: "part-size", Type: "SIZE", Example: "64MiB",
		Usage: "bytes of each part in which a large file is uploaded, from 5MiB to 5GiB, for stores that want equal parts (default, or 0: growing from 8MiB, so that 10,000 parts hold 5 TiB)",
		set: func(v *Values, raw string) error {
			n, err := ParseSize(raw)
			if err == nil && n != 0 && (n < minPartSize || n > maxPartSize) {
				err = errors.New("want 5MiB to 5GiB, as S3 takes parts, or 0: growing; a file may have 10,000 parts")
			}
			v.PartSize = n
			return err
		},
		get: func(v *Values) any { return orNone(v.PartSize) },
	}
}

func text(name, kind, example, usage string, at func(*Values) *string) Setting {
	s := Setting{Name: name, Type: kind, Example: example, Usage: usage, set: func(v *Values, raw string) error {
		if raw == "" {
			return errors.New("want a value")
		}
		*at(v) = raw
		return nil
	}}
	return s.with(func(v *Values) any { return orNone(*at(v)) })
}

// pattern is a text of one form; wanted says which.
func pattern(name, kind, example, usage, form, wanted string, at func(*Values) *string) Setting {
	whole := regexp.MustCompile(`^(?:` + form + `)$`)
	s := Setting{Name: name, Type: kind, Example: example, Usage: usage, set: func(v *Values, raw string) error {
		if !whole.MatchString(raw) {
			return errors.New("want " + wanted)
		}
		*at(v) = raw
		return nil
	}}
	return s.with(func(v *Values) any { return orNone(*at(v)) })
}

// setEndpoint takes a base URL without anything that would be left unused, or
// that would be shown where it should not: a password.
func setEndpoint(at *string, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want http://HOST:PORT or https://HOST:PORT")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("want a URL without user, password, ? and #")
	}
	*at = strings.TrimSuffix(raw, "/")
	return nil
}

// setFile makes the path of a file absolute, for a daemon leaves its directory.
func setFile(at *string, raw string) error {
	if raw == "" {
		return errors.New("want a file")
	}
	return setPath(at, raw)
}

// setDirectory is setFile of a directory.
func setDirectory(at *string, raw string) error {
	if raw == "" {
		return errors.New("want a directory")
	}
	return setPath(at, raw)
}

func setPath(at *string, raw string) error {
	path, err := filepath.Abs(raw)
	*at = path
	return err
}

// timeout is a duration that is not 0.
func timeout(name, usage, def string, at func(*Values) *time.Duration) Setting {
	s := duration(name, usage, def, at)
	set := s.set
	s.set = func(v *Values, raw string) error {
		if err := set(v, raw); err != nil {
			return err
		}
		if *at(v) < time.Second {
			return errors.New("want a second or more")
		}
		return nil
	}
	return s
}

// s3Location takes s3://BUCKET/PREFIX; ok is false for another kind of location.
func s3Location(raw string) (uri string, ok bool, err error) {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || !strings.EqualFold(scheme, "s3") && !strings.EqualFold(scheme, "s3a") {
		return "", false, nil
	}
	if bucket, _, _ := strings.Cut(rest, "/"); bucket == "" {
		return "", true, errors.New("want s3://BUCKET/PREFIX")
	}
	return "s3://" + rest, true, nil
}

// S3Names are the names of the settings for a lake whose data is in S3 alone.
func S3Names() []string {
	var names []string
	for _, s := range remote() {
		names = append(names, s.Name)
	}
	return names
}
