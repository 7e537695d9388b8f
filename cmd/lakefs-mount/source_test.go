package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

func TestSourcesInS3(t *testing.T) {
	for text, want := range map[string]string{
		"s3://lake":               "s3://lake/",
		"s3://lake/":              "s3://lake/",
		"s3://lake/wh":            "s3://lake/wh/",
		"s3://lake/wh/":           "s3://lake/wh/",
		"S3://lake/a b/%41":       "s3://lake/a b/%41/",
		"s3a://lake.of.x/wh/deep": "s3://lake.of.x/wh/deep/",
	} {
		got, err := parseSource(text)
		if err != nil || !got.onS3() || got.String() != want {
			t.Errorf("parseSource(%q) is %q (%v), want %q", text, got, err, want)
		}
		if again, err := parseSource(got.String()); err != nil || again != got {
			t.Errorf("parseSource(%q) is %+v (%v), want %+v", got, again, err, got)
		}
	}
	for _, bad := range []string{
		"s3://", "s3:///wh", "s3://ab", "s3://a@lake/", "s3://la ke/", "s3://lake//", "s3://lake//wh", "s3://lake/a//b", "s3://lake/./x",
		"s3://lake/a/../b", "s3://lake/" + strings.Repeat("a", 256), "s3://lake/" + strings.Repeat("a/", 300), "s3://lake/a\x00b",
	} {
		if got, err := parseSource(bad); err == nil || !strings.HasPrefix(err.Error(), "source ") {
			t.Errorf("parseSource(%q) is %q (%v), want an error of the source", bad, got, err)
		}
	}
}

func TestSourcesOfGlue(t *testing.T) {
	for text, want := range map[string]string{"glue:": "glue:", "glue:123456789012": "glue:123456789012", "GLUE:": "glue:"} {
		got, err := parseSource(text)
		if err != nil || !got.glue || !got.onS3() || got.String() != want {
			t.Errorf("parseSource(%q) is %q (%v), want %q", text, got, err, want)
		}
	}
	for _, bad := range []string{"glue:abc", "glue:123", "glue:1234567890123", "glue:12345678901x", "glue:１２３４", "glue://123456789012", "glue:/", "glue: "} {
		got, err := parseSource(bad)
		if err == nil || !strings.HasPrefix(err.Error(), "source ") || !strings.Contains(err.Error(), "12 digits") {
			t.Errorf("parseSource(%q) is %q (%v), want an error that names the forms", bad, got, err)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("glue:", 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := parseSource("glue:"); err != nil || !got.glue {
		t.Errorf("beside a folder by the name, glue: is %q (%v)", got, err)
	}
	if got, err := parseSource("./glue:"); err != nil || got.glue || filepath.Base(got.folder) != "glue:" {
		t.Errorf("./glue: is %q (%v), want the folder", got, err)
	}
}

func TestSourcesOfOtherKinds(t *testing.T) {
	for _, text := range []string{"hive://h:9083", "hive:", "hdfs://h/x", "s3:bucket", "gs://b/x"} {
		if got, err := parseSource(text); err == nil || !strings.Contains(err.Error(), "not served by this version; name glue:, s3://BUCKET/PREFIX/") {
			t.Errorf("parseSource(%q) is %q (%v)", text, got, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "s3:")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	if got, err := parseSource("s3:"); err != nil || got.onS3() || got.String() != dir {
		t.Errorf("a folder by the name of s3: is %q (%v), want %q", got, err, dir)
	}
}

func TestAllowedLocationsAreOfTheSourcesKind(t *testing.T) {
	dir := t.TempDir()
	folder, bucket, catalog := source{folder: dir}, source{}, source{glue: true}
	bucket.root.Bucket = "lake"
	for _, tt := range []struct {
		name   string
		source source
		allow  []string
		want   []string
		bad    string
	}{
		{name: "folder", source: folder, allow: []string{dir}, want: []string{dir}},
		{name: "bucket", source: bucket, allow: []string{"s3://b-1/x", "s3://b-2"}, want: []string{"s3://b-1/x/", "s3://b-2/"}},
		{name: "glue", source: catalog, allow: []string{"s3://b-1/x"}, want: []string{"s3://b-1/x/"}},
		{name: "glue without any", source: catalog},
		{name: "folder for glue", source: catalog, allow: []string{dir}, bad: "SOURCE is a Glue catalog"},
		{name: "user", source: bucket, allow: []string{"s3://home/{user}"}, want: []string{"s3://home/" + userName() + "/"}},
		{name: "bucket for a folder", source: folder, allow: []string{"s3://b-1"}, bad: "SOURCE is a local folder"},
		{name: "folder for a bucket", source: bucket, allow: []string{dir}, bad: "SOURCE is a bucket of manifests"},
		{name: "no bucket", source: bucket, allow: []string{"s3://b"}, bad: "no name of a bucket"},
		{name: "no path", source: bucket, allow: []string{"s3://lake/a//b"}, bad: "no path can have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &request{source: tt.source}
			r.settings.AllowLocation = tt.allow
			got, err := allowed(r)
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) || !strings.Contains(err.Error(), "--allow-location") {
					t.Errorf("error is %v, want one with %q", err, tt.bad)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("allowed are %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func TestFlagsOfAnotherKindOfSourceAreAnError(t *testing.T) {
	dir := t.TempDir()
	mnt := filepath.Join(dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	example := map[string]string{"": "true", "REGION": "eu-north-1", "URL": "http://h", "CLASS": "X", "ACCOUNT": "123456789012", "FILE": "/x", "SIZE": "8MiB", "TIME": "1m"}
	for s := range settings.All() {
		refusals := map[string]string{} // by source
		if s.S3 || s.Glue {
			refusals[dir] = "SOURCE is a local folder"
		}
		if s.Glue {
			refusals["s3://lake/wh/"] = "SOURCE is a bucket of manifests"
		}
		if s.Name == "sse-kms-key-id" || s.Name == "cache-size" { // which need another
			continue
		}
		value, found := example[s.Type]
		if !found {
			value, _, _ = strings.Cut(s.Type, "|")
		}
		for source, want := range refusals {
			for _, args := range [][]string{{"mount", "--" + s.Name + "=" + value, source, mnt}, {source, mnt, "-o", s.Name + "=" + value}} {
				_, stderr, code := call(t, "lakefs-mount", nil, args...)
				if code != exitUsage || !strings.Contains(stderr, "--"+s.Name) || !strings.Contains(stderr, want) {
					t.Errorf("%q: exit code %d, %q", args, code, stderr)
				}
			}
		}
	}
}

func TestPolicyStatements(t *testing.T) {
	root := source{}.root
	root.Bucket, root.Key = "lake", "wh/"
	for _, tt := range []struct {
		action, key, region, want string
	}{
		{"s3:ListBucket", "wh/", "eu-north-1", `{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":{"StringLike":{"s3:prefix":"wh/*"}}}`},
		{"s3:ListBucket", "", "eu-north-1", `{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake"}`},
		{"s3:PutObject", "wh/", "cn-north-1", `{"Effect":"Allow","Action":"s3:PutObject","Resource":"arn:aws-cn:s3:::lake/wh/*"}`},
		{"s3:GetObject", "", "us-gov-east-1", `{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws-us-gov:s3:::lake/*"}`},
	} {
		root.Key = tt.key
		if got := policyStatement(tt.action, root, tt.region); got != tt.want {
			t.Errorf("%s below %q: %s, want %s", tt.action, tt.key, got, tt.want)
		}
	}
}

func TestKeyIdsAreMasked(t *testing.T) {
	for id, want := range map[string]string{"AKIAIOSFODNN7EXAMPLE": "AKIA…MPLE", "short": "****", "": "****"} {
		if got := masked(id); got != want {
			t.Errorf("masked(%q) is %q, want %q", id, got, want)
		}
	}
}
