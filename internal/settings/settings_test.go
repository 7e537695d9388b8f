package settings

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDefaultsResolve(t *testing.T) {
	r, err := Resolve(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Write != WriteOverwrite || r.CheckFormat != "strict" || r.OnKilled != "stage" || r.ReadOnly || r.UID != nil {
		t.Errorf("defaults are %+v", r.Values)
	}
	if r.FileMode != 0o600 || r.DirMode != 0o700 || r.StagedKeep != 7*24*time.Hour || r.MetadataTTL != 5*time.Second ||
		r.ManifestMaxBytes != 1<<20 || r.ManifestMaxColumns != 4096 || r.ManifestMaxKeys != 32 || r.LogLevel != slog.LevelInfo {
		t.Errorf("defaults are %+v", r.Values)
	}
	if got := r.Sources["write"]; got != FromDefault {
		t.Errorf("source of write is %q, want default", got)
	}
}

func TestFlagsWinOverEnvironmentWinsOverDefault(t *testing.T) {
	env := []string{"LAKEFS_MOUNT_WRITE=none", "LAKEFS_MOUNT_METADATA_TTL=1m", "PATH=/bin", "LAKEFS_MOUNT_UMASK="}
	r, err := Resolve(Given{"write": {"create", "delete"}}, env)
	if err != nil {
		t.Fatal(err)
	}
	if r.Write != "delete" || r.Sources["write"] != FromFlag {
		t.Errorf("write is %q from %s, want delete from the flag", r.Write, r.Sources["write"])
	}
	if r.MetadataTTL != time.Minute || r.Sources["metadata-ttl"] != FromEnvironment {
		t.Errorf("metadata-ttl is %v from %s, want 1m from the environment", r.MetadataTTL, r.Sources["metadata-ttl"])
	}
}

func TestMistakesAreNamed(t *testing.T) {
	tests := []struct {
		given Given
		env   []string
		want  []string // parts of the error
	}{
		{env: []string{"LAKEFS_MOUNT_READONLY=1"}, want: []string{"LAKEFS_MOUNT_READONLY", "nearest is LAKEFS_MOUNT_READ_ONLY"}},
		{env: []string{"LAKEFS_MOUNT_WRITE=all"}, want: []string{`LAKEFS_MOUNT_WRITE "all"`, "none, create, overwrite, delete"}},
		{given: Given{"file-mode": {"0999"}}, want: []string{`--file-mode "0999"`, "octal"}},
		{given: Given{"dir-mode": {"1777"}}, want: []string{"at most 0777"}},
		{given: Given{"staged-keep": {"7 days"}}, want: []string{"7d"}},
		{given: Given{"memory-limit": {"-1"}}, want: []string{"512MiB"}},
		{given: Given{"memory-limit": {"0"}}, want: []string{"more than 0"}},
		{given: Given{"memory-limit": {"16777215"}}, want: []string{"--memory-limit", "at least 16MiB"}},
		{given: Given{"uid": {"root"}}, want: []string{"numeric"}},
		{given: Given{"uid": {"4294967295"}}, want: []string{"numeric"}},
		{given: Given{"manifest-max-keys": {"0"}}, want: []string{"from 1 on"}},
		{given: Given{"allow-location": {"data"}}, want: []string{"absolute"}},
		{given: Given{"allow-location": {"file://host/data"}}, want: []string{"absolute"}},
		{given: Given{"allow-location": {"/home/{user}"}, "allow-other": {"true"}}, want: []string{"{user}", "--allow-other"}},
		{given: Given{"log-level": {"INFO+1"}}, want: []string{"debug, info, warn, error"}},
		{given: Given{"endpoint-url": {"127.0.0.1:9000"}}, want: []string{"http://HOST"}},
		{given: Given{"endpoint-url": {"ftp://h"}}, want: []string{"http://HOST"}},
		{given: Given{"endpoint-url": {"http://user@h/"}}, want: []string{"without user"}},
		{given: Given{"glue-endpoint-url": {"127.0.0.1:5000"}}, want: []string{"--glue-endpoint-url", "http://HOST"}},
		{given: Given{"glue-endpoint-url": {"http://u:p@h"}}, want: []string{"--glue-endpoint-url", "without user"}},
		{given: Given{"catalog-writes": {"all"}}, want: []string{`--catalog-writes "all"`, "none, partitions"}},
		{given: Given{"database": {"sales", "[a"}}, want: []string{`--database "[a"`, "pattern"}},
		{given: Given{"table": {`a\`}}, want: []string{"--table", "pattern"}},
		{given: Given{"table": {""}}, want: []string{`--table ""`, "pattern"}},
		{env: []string{"LAKEFS_MOUNT_DATABASE=a:[b"}, want: []string{`LAKEFS_MOUNT_DATABASE "[b"`}},
		{given: Given{"region": {"EU"}}, want: []string{"--region", "eu-central-1"}},
		{given: Given{"expected-bucket-owner": {"me"}}, want: []string{"12 digits"}},
		{given: Given{"checksum": {"md5"}}, want: []string{"crc32c, crc64nvme, sha256, none"}},
		{given: Given{"part-size": {"5242879"}}, want: []string{`--part-size "5242879"`, "5MiB to 5GiB", "as S3 takes parts"}},
		{given: Given{"part-size": {"5.1GiB"}}, want: []string{"5MiB to 5GiB"}},
		{given: Given{"part-size": {"-1"}}, want: []string{"--part-size", "512MiB"}},
		{env: []string{"LAKEFS_MOUNT_PART_SIZE=8"}, want: []string{`LAKEFS_MOUNT_PART_SIZE "8"`, "5MiB to 5GiB"}},
		{given: Given{"sse": {"kms"}}, want: []string{"AES256, aws:kms, aws:kms:dsse"}},
		{given: Given{"sse-kms-key-id": {"k"}}, want: []string{"--sse-kms-key-id", "--sse=aws:kms"}},
		{given: Given{"sse-kms-key-id": {"k"}, "sse": {"AES256"}}, want: []string{"--sse-kms-key-id"}},
		{given: Given{"no-sign-request": {"true"}, "profile": {"p"}}, want: []string{"--no-sign-request", "--profile"}},
		{given: Given{"temporary-linger": {"0"}}, want: []string{"--temporary-linger", "more than 0"}},
		{given: Given{"io-timeout": {"0"}}, want: []string{"a second or more"}},
		{given: Given{"allow-location": {"s3:///x"}}, want: []string{"s3://BUCKET/PREFIX"}},
		{given: Given{"allow-location": {"s3://b/{user}"}, "allow-other": {"true"}}, want: []string{"{user}", "--allow-other"}},
		{given: Given{"write": {"x"}, "uid": {"y"}}, want: []string{"--write", "--uid"}},
	}
	for _, tt := range tests {
		_, err := Resolve(tt.given, tt.env)
		if err == nil {
			t.Errorf("%v %v: no error", tt.given, tt.env)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v %v: error %q lacks %q", tt.given, tt.env, err, part)
			}
		}
	}
}

func TestPartSizes(t *testing.T) {
	env := []string{"LAKEFS_MOUNT_PART_SIZE=64MiB"}
	for raw, want := range map[string]int64{"5MiB": 5 << 20, "5242880": 5 << 20, "16M": 16 << 20, "5GiB": 5 << 30, "0": 0} {
		if r, err := Resolve(Given{"part-size": {raw}}, env); err != nil || r.PartSize != want {
			t.Errorf("--part-size=%s is %d, %v; want %d", raw, r.PartSize, err, want)
		}
	}
	if r, err := Resolve(nil, env); err != nil || r.PartSize != 64<<20 || !slices.Equal(r.S3Settings(FromEnvironment), []string{"part-size"}) {
		t.Errorf("of the environment: %d, %v, S3 settings %q", r.PartSize, err, r.S3Settings(FromEnvironment))
	}
	if r, err := Resolve(nil, nil); err != nil || r.PartSize != 0 {
		t.Errorf("by default it is %d, %v; want 0, growing", r.PartSize, err)
	}
}

// TestOperationsNameEachSettingOfS3: a flag that the documentation does not have is
// one that nobody finds.
func TestOperationsNameEachSettingOfS3(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for s := range All() {
		if (s.S3 || s.Glue) && !strings.Contains(string(raw), "`--"+s.Name) {
			t.Errorf("docs/operations.md has no --%s", s.Name)
		}
	}
}

func TestListsOfNames(t *testing.T) {
	file := func(text string) Given { return Given{"config": {settingsFile(t, text)}} }
	for _, tt := range []struct {
		what  string
		given Given
		env   []string
		want  []string
	}{
		{what: "default", want: []string{"*~", "*.bak", "*.orig"}},
		{what: "one flag", given: Given{"backup-names": {"a,b*"}}, want: []string{"a", "b*"}},
		{what: "two flags", given: Given{"backup-names": {"a,b", "c=d"}}, want: []string{"a", "b", "c=d"}},
		{what: "an empty flag", given: Given{"backup-names": {""}}},
		{what: "environment", env: []string{"LAKEFS_MOUNT_BACKUP_NAMES=a,b:c"}, want: []string{"a", "b", "c"}},
		{what: "an empty list in the environment", env: []string{"LAKEFS_MOUNT_BACKUP_NAMES=,"}},
		{what: "an unset variable", env: []string{"LAKEFS_MOUNT_BACKUP_NAMES="}, want: []string{"*~", "*.bak", "*.orig"}},
		{what: "file", given: file("backup-names: ['*.orig', a]\n"), want: []string{"*.orig", "a"}},
		{what: "a line of the file", given: file("backup-names: a,b\n"), want: []string{"a", "b"}},
		{what: "an empty list in the file", given: file("backup-names: []\n")},
	} {
		r, err := Resolve(tt.given, tt.env)
		if err != nil || !slices.Equal(r.BackupNames, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.what, r.BackupNames, err, tt.want)
		}
		again, err := Resolve(parse(t, r.Flags()), tt.env)
		if err != nil || !slices.Equal(again.BackupNames, tt.want) {
			t.Errorf("%s: a second run by its flags has %q, %v; want %q", tt.what, again.BackupNames, err, tt.want)
		}
	}
}

func TestUmaskIsTakenOff(t *testing.T) {
	r, err := Resolve(Given{"file-mode": {"666"}, "dir-mode": {"0777"}, "umask": {"027"}}, nil)
	if err != nil || r.FileMode != 0o640 || r.DirMode != 0o750 {
		t.Errorf("modes are %o and %o, %v; want 640 and 750", r.FileMode, r.DirMode, err)
	}
}

func TestPatternsOfNamesAdd(t *testing.T) {
	want := []string{"s3", "sales*", "[a-c]?"}
	for name, given := range map[string]struct {
		given Given
		env   []string
	}{
		"flags":       {given: Given{"database": want}},
		"environment": {env: []string{"LAKEFS_MOUNT_DATABASE=s3:sales*:[a-c]?"}},
		"file":        {given: Given{"config": {settingsFile(t, "database: [s3, 'sales*', '[a-c]?']\n")}}},
	} {
		r, err := Resolve(given.given, given.env)
		if err != nil || !slices.Equal(r.Databases, want) || len(r.Tables) != 0 {
			t.Errorf("%s: %q, %q, %v; want %q", name, r.Databases, r.Tables, err, want)
		}
	}
}

func TestGlueSettings(t *testing.T) {
	r, err := Resolve(Given{"discover": {"true"}}, []string{"LAKEFS_MOUNT_GLUE_ENDPOINT_URL=http://h:5000/"})
	if err != nil || r.GlueEndpointURL != "http://h:5000" || !r.Discover || r.CatalogWrites != CatalogWritesPartitions {
		t.Errorf("settings are %+v, %v", r.Values, err)
	}
	if got := r.GlueSettings(FromFlag, FromEnvironment); !slices.Equal(got, []string{"glue-endpoint-url", "discover"}) {
		t.Errorf("settings of Glue alone: %q", got)
	}
}

func TestAllowLocationAdds(t *testing.T) {
	want := []string{"/a", "/b c", "s3://b/x:y/", "/d", "s3://c"}
	for name, r := range map[string]func() (Resolved, error){
		"flags": func() (Resolved, error) {
			return Resolve(Given{"allow-location": {"/a/", "file:/b c", "s3://b/x:y/", "file:///d", "S3A://c"}}, nil)
		},
		"file": func() (Resolved, error) {
			path := settingsFile(t, "allow-location:\n- /a\n- file:/b c\n- s3://b/x:y/\n- /d\n- s3://c\n")
			return Resolve(Given{"config": {path}}, nil)
		},
	} {
		if got, err := r(); err != nil || !slices.Equal(got.AllowLocation, want) {
			t.Errorf("%s: %q, %v; want %q", name, got.AllowLocation, err, want)
		}
	}
	want = []string{"/a", "/b c", "s3://b/x/", "s3://c", "/d"}
	r, err := Resolve(nil, []string{"LAKEFS_MOUNT_ALLOW_LOCATION=/a:/b c:s3://b/x/:S3://c:file:///d"})
	if err != nil || !slices.Equal(r.AllowLocation, want) {
		t.Errorf("environment: %q, %v; want %q", r.AllowLocation, err, want)
	}
}

func TestCacheSizeNeedsADirectory(t *testing.T) {
	size := []string{"LAKEFS_MOUNT_CACHE_SIZE=1GiB"}
	if _, err := Resolve(Given{"cache-size": {"1GiB"}}, nil); err == nil || !strings.Contains(err.Error(), "--cache-size needs --cache-dir") {
		t.Errorf("a size alone: %v", err)
	}
	if _, err := Resolve(nil, size); err == nil || !strings.Contains(err.Error(), "LAKEFS_MOUNT_CACHE_SIZE needs --cache-dir") {
		t.Errorf("a size alone, of the environment: %v", err)
	}
	if r, err := Resolve(Given{"cache-dir": {"/c"}}, size); err != nil || r.CacheSize != 1<<30 {
		t.Errorf("with a directory: %d, %v", r.CacheSize, err)
	}
}

func TestS3SettingsAreThoseThatWereGiven(t *testing.T) {
	r, err := Resolve(Given{"region": {"eu-north-1"}, "write": {"none"}}, []string{"LAKEFS_MOUNT_PATH_STYLE=true"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.S3Settings(FromFlag); !slices.Equal(got, []string{"region"}) {
		t.Errorf("from flags: %q", got)
	}
	if got := r.S3Settings(FromEnvironment, FromFile); !slices.Equal(got, []string{"path-style"}) {
		t.Errorf("from environment and file: %q", got)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"1": 1, "10B": 10, "1k": 1024, "512MiB": 512 << 20, "1.5GiB": 3 << 29, "2 TiB": 2 << 40, "3MB": 3000000, "1gb": 1000000000,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) is %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "MiB", "1XB", "-1K", "1e3", "0x10", "9999999999T", "inf", "nan", "1iB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) is %d, want an error", s, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{"0": 0, "5s": 5 * time.Second, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1m30s": 90 * time.Second} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) is %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "5", "-1s", "d", "1.5d", "99999d1", "1d-1h", "7 d"} {
		if got, err := ParseDuration(s); err == nil {
			t.Errorf("ParseDuration(%q) is %v, want an error", s, got)
		}
	}
}

func TestMountOptions(t *testing.T) {
	given, err := ParseOptions([]string{"rw,nosuid,_netdev,x-systemd.automount,allow_other", `uid=1000,dir-mode=0755,allow_location=/a\,b,ro`})
	if err != nil {
		t.Fatal(err)
	}
	want := Given{"allow-other": {"true"}, "uid": {"1000"}, "dir-mode": {"0755"}, "allow-location": {"/a,b"}, "read-only": {"true"}}
	if len(given) != len(want) {
		t.Errorf("options are %v, want %v", given, want)
	}
	for name, w := range want {
		if !slices.Equal(given[name], w) {
			t.Errorf("option %s is %q, want %q", name, given[name], w)
		}
	}
	for option, part := range map[string]string{"alow_other": "allow-other", "uid": "uid=ID", "chek-format=off": "check-format"} {
		if _, err := ParseOptions([]string{option}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("option %q: error %v, want one with %q", option, err, part)
		}
	}
}

func TestMountOptionsOfTheKernelAndOfFstabArePassedOver(t *testing.T) {
	for _, option := range []string{
		"noexec", "exec", "sync", "async", "dirsync", "diratime", "nodiratime", "strictatime", "relatime", "norelatime",
		"lazytime", "silent", "loud", "defaults", "user", "users", "owner", "group", "comment=a b", "noatime", "atime",
	} {
		if given, err := ParseOptions([]string{option}); err != nil || len(given) != 0 {
			t.Errorf("option %q gives %v, %v; want nothing", option, given, err)
		}
	}
}

func TestSuggestNamesWhatIsNear(t *testing.T) {
	names := []string{"ro", "rw", "uid", "read-only", "allow-other"}
	for name, want := range map[string]string{
		"uidd": "; the nearest is uid", "readonly": "; the nearest is read-only", "alow-otter": "; the nearest is allow-other",
		"rx": "", "noexec": "", "frobnicate": "", "": "",
	} {
		if got := Suggest(name, names); got != want {
			t.Errorf("Suggest(%q) is %q, want %q", name, got, want)
		}
	}
}

func TestEverySettingHasAFlagThatResolvesToItself(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	example := map[string]string{
		"ID": "7", "MODE": "0711", "TIME": "3s", "SIZE": "16MiB", "N": "9", "DIR": "/x", "": "true", "FILE": file,
		"NAME": "a", "KEY": "k", "REGION": "eu-north-1", "URL": "http://h:1", "CLASS": "GLACIER_IR", "ACCOUNT": "123456789012", "LOCATION": "/x",
		"GLOB": "sales*", "ADDRESS": ":9105", "LIST": "*.part,*.tmp",
	}
	for s := range All() {
		if s.Name == "no-sign-request" { // it goes with no --profile
			continue
		}
		value, simple := example[s.Type]
		if s.Name == "sse" {
			value, simple = "aws:kms", true
		}
		if !simple {
			value = s.Type[:strings.IndexByte(s.Type, '|')]
		}
		if err := fs.Parse([]string{"--" + s.Name + "=" + value}); err != nil {
			t.Errorf("--%s=%s: %v", s.Name, value, err)
		}
		if got := FromFlags(fs)[s.Name]; !slices.Equal(got, []string{value}) {
			t.Errorf("--%s gives %q, want %q", s.Name, got, value)
		}
	}
	if _, err := Resolve(FromFlags(fs), nil); err != nil {
		t.Error(err)
	}
}
