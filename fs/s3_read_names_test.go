package fs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// Keys of a bucket, which may be what no path can be.

// onMini mounts db.t of files on the store whose keys are flat, with further keys
// below the table, and everything allowed.
func onMini(t *testing.T, files map[string]string, further ...string) (l *mounttest.Lake, put func(key, content string)) {
	t.Helper()
	l = mounttest.New(t, mounttest.Options{
		Server: s3test.Mini(t), Tables: []mounttest.Table{text("t", files)}, Flags: append(shortTTL, "--write=delete"), Timeout: 2 * time.Minute,
	})
	server, bucket := l.Bucket()
	put = func(key, content string) {
		t.Helper()
		server.Put(t, bucket, l.Key("db/t")+"/"+key, []byte(content))
	}
	for _, key := range further {
		put(key, "content of "+key)
	}
	l.Start()
	return l, put
}

// keysBelow are the keys below db.t.
func keysBelow(t *testing.T, l *mounttest.Lake, dir string) []string {
	t.Helper()
	server, bucket := l.Bucket()
	prefix := l.Key("db/t") + "/"
	keys := server.Keys(t, bucket, prefix+dir)
	for i, key := range keys {
		keys[i] = strings.TrimPrefix(key, prefix)
	}
	return keys
}

func wantKeys(t *testing.T, l *mounttest.Lake, dir string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := keysBelow(t, l, dir); !slices.Equal(got, want) {
		t.Errorf("the store has below %q %q, want %q", dir, got, want)
	}
}

// Case 56: the keys that no path reaches are counted, and left.
func TestCase56UnreachableKeysOnS3(t *testing.T) {
	t.Parallel()
	unseen := []string{"A//B", "A/./x", "A/../x", "A/" + strings.Repeat("x", 256)}
	l, _ := onMini(t, nil, append(unseen, "A/ok", "A/d/f", "/lead", "beside")...)
	wantNames(t, l, "db/t", "A", "beside")
	wantNames(t, l, "db/t/A", "d", "ok")
	wantContent(t, l, "db/t/A/ok", "content of A/ok")
	for dir, want := range map[string]int{"db/t": 1, "db/t/A": len(unseen), "db/t/A/d": 0} {
		if s := status(t, l, dir); s.Catalog.UnreachableKeys != want {
			t.Errorf("unreachable keys in %s: %d, want %d", dir, s.Catalog.UnreachableKeys, want)
		}
	}
	if r := l.Sh(`rm -r db/t/A`); r.Code == 0 || !strings.Contains(r.Err, "not empty") {
		t.Errorf("rm -r of a directory with more than is seen: exit %d, %s", r.Code, r.Err)
	}
	wantKeys(t, l, "", append(unseen, "/lead", "beside")...)
	wantErrno(t, "rmdir of what looks empty", rmdir(l, "db/t/A"), syscall.ENOTEMPTY)
	wantNames(t, l, "db/t", "A", "beside")
	wantNames(t, l, "db/t/A")
}

// Case 58: an object, a directory and its marker under one name, in each order.
func TestCase58ObjectBesideDirectoryOnS3(t *testing.T) {
	t.Parallel()
	l, put := onMini(t, nil, "beside")
	orders := [][]string{
		{"out", "out/", "out/x"}, {"out", "out/x", "out/"}, {"out/", "out", "out/x"}, {"out/", "out/x", "out"}, {"out/x", "out", "out/"}, {"out/x", "out/", "out"},
	}
	for i, order := range orders {
		dir := fmt.Sprint("p", i)
		for _, key := range order {
			content := "content of " + key
			if key == "out/" {
				content = ""
			}
			put(dir+"/"+key, content)
		}
		path := "db/t/" + dir
		l.Eventually(path+" is seen", seenWithin, func() bool { return statErr(l, path+"/out/x") == nil })
		wantNames(t, l, path, "out")
		wantNames(t, l, path+"/out", "x")
		if st := stat(t, l, path+"/out"); st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			t.Errorf("%s/out is no directory: %o", path, st.Mode)
		}
		wantContent(t, l, path+"/out/x", "content of out/x")
		if s := status(t, l, path); !slices.Equal(s.Catalog.HiddenObjects, []string{"out"}) {
			t.Errorf("%s: hidden objects %q", path, s.Catalog.HiddenObjects)
		}
		l.MustSh(`rm -r ` + path + `/out`)
		wantKeys(t, l, dir+"/", dir+"/out")
		// What was hidden is what the name is now.
		l.Eventually("the object is seen", seenWithin, func() bool {
			got, err := l.ReadFile(path + "/out")
			return err == nil && got == "content of out"
		})
		wantNames(t, l, path, "out")
	}
}

// oddNames are names that some layer may take for something else.
func oddNames() []string {
	return []string{
		"a b", " a", "a ", "a+b", "100%", "a%20b", "%2F", "%zz", "~", "~root", "a?", "a?b=c&d", "a#b", `q"u'o`, "`x`", "é", "🦆", "*", "[a]", "-n", "a\nb", "a\tb",
		`back\slash`, "a:b", "a;b", "a=b", "a,b", "a@b", "a&b", "<a>", "$(x)", "$HOME", "(a)", "{a}", "a|b", "^", "..a", "...",
	}
}

// Case 59: names are exact, in and out, and so are keys.
func TestCase59OddNamesOnS3(t *testing.T) {
	t.Parallel()
	for what, server := range map[string]func(testing.TB) *s3test.Server{"versitygw": s3test.Versity, "MiniStack": s3test.Mini} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			files := make(map[string]string)
			for _, n := range oddNames() {
				files["up/"+n], files["dir "+n+"/f"] = "uploaded "+n, "below "+n
			}
			l := mounttest.Mount(t, mounttest.Options{
				Server: server(t), Tables: []mounttest.Table{text("t", files)}, Flags: []string{"--write=delete"}, Timeout: 3 * time.Minute,
			})
			wantNames(t, l, "db/t/up", oddNames()...)
			for _, n := range oddNames() {
				wantContent(t, l, "db/t/up/"+n, "uploaded "+n)
				wantContent(t, l, "db/t/dir "+n+"/f", "below "+n)
				inAndOut(t, l, n)
			}
		})
	}
}

// inAndOut has programs write, rename and remove a name.
func inAndOut(t *testing.T, l *mounttest.Lake, name string) {
	t.Helper()
	r := l.Exec("bash", "-c", `set -e; mkdir -p "$2" db/t/in; printf %s "new $1" >"$2/source"; cp -- "$2/source" "db/t/in/$1"; cmp "$2/source" "db/t/in/$1"
mv -- "db/t/in/$1" "db/t/in/moved $1"; test "$(ls -N db/t/in)" = "moved $1"`, "bash", name, t.TempDir())
	if r.Code != 0 {
		t.Errorf("%q: exit %d, %s%s", name, r.Code, r.Out, r.Err)
	}
	wantKeys(t, l, "in/", "in/moved "+name)
	if got, there := inStore(t, l, "db/t/in/moved "+name); !there || got != "new "+name {
		t.Errorf("%q in the store: %q", name, got)
	}
	if r := l.Exec("rm", "--", "db/t/in/moved "+name); r.Code != 0 {
		t.Errorf("rm of %q: %s", name, r.Err)
	}
	wantKeys(t, l, "in/")
}

// Case 60: names of 255 and 256 bytes, keys over 1024, and two normal forms.
func TestCase60LongNamesOnS3(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, nil, "--write=delete", "--metadata-ttl=5m", "--negative-ttl=5m")
	longest := strings.Repeat("x", 254)
	write(t, l, "db/t/"+longest+"1", "file")
	write(t, l, "db/t/"+longest+"1", "overwritten")
	wantErrno(t, "rename", rename(l, "db/t/"+longest+"1", "db/t/"+longest+"2"), 0)
	wantContent(t, l, "db/t/"+longest+"2", "overwritten")
	l.MustSh(fmt.Sprintf(`cd db/t; echo more >>%[1]s2; mkdir %[1]s3; echo x >%[1]s3/%[1]s4; ls -l . %[1]s3 >/dev/null`, longest))
	wantKeys(t, l, "x", longest+"2", longest+"3/"+longest+"4")

	deep := "db/t"
	for range 3 {
		deep += "/" + longest
		wantErrno(t, "mkdir", mkdir(l, deep), 0)
	}
	base := deep + "/"
	room := 1024 - len(l.Key(base)) - 1
	fits, over := base+strings.Repeat("f", room), base+strings.Repeat("o", room+1)
	write(t, l, fits, "a key of 1024 bytes")
	if got := len(l.Key(fits)); got != 1024 || len(keysBelow(t, l, strings.TrimPrefix(fits, "db/t/"))) != 1 {
		t.Errorf("no key of %d bytes in the store", got)
	}
	l.Proxy.Reset()
	for what, err := range map[string]error{
		"stat of 256 bytes":     statErr(l, "db/t/"+longest+"12"),
		"create of 256 bytes":   openErr(l, "db/t/"+longest+"12", creat),
		"create of a long key":  openErr(l, over, creat),
		"mkdir of a long key":   mkdir(l, over),
		"rename to 256 bytes":   rename(l, "db/t/"+longest+"2", "db/t/"+longest+"12"),
		"rename to a long key":  rename(l, fits, over),
		"stat below a long key": statErr(l, over+"/x"),
	} {
		if strings.HasPrefix(what, "stat below") {
			wantErrno(t, what, err, syscall.ENOENT)
			continue
		}
		wantErrno(t, what, err, syscall.ENAMETOOLONG)
	}
	for _, q := range l.Proxy.Log() {
		if len(q.Key) > 1024 || strings.HasSuffix(q.Key, longest+"12") {
			t.Errorf("%s of a key of %d bytes", q.Op, len(q.Key))
		}
	}

	write(t, l, "db/t/\u00e9", "NFC")
	write(t, l, "db/t/e\u0301", "NFD")
	wantContent(t, l, "db/t/\u00e9", "NFC")
	wantContent(t, l, "db/t/e\u0301", "NFD")
	wantKeys(t, l, "\u00e9", "\u00e9")
	wantKeys(t, l, "e", "e\u0301")
}

// tableAt adds the table db.NAME, whose manifest has exactly this location.
func tableAt(t *testing.T, l *mounttest.Lake, name, location string) {
	t.Helper()
	l.AddTables(text(name, nil))
	manifest := l.StoredManifest("db/" + name)
	was := regexp.MustCompile(`"location": "[^"]*"`)
	if !was.MatchString(manifest) {
		t.Fatalf("a manifest without location: %s", manifest)
	}
	l.PutManifest("db/"+name, was.ReplaceAllLiteralString(manifest, fmt.Sprintf(`"location": %q`, location)))
}

// Case 42: a table's location without a "/" at its end, beside one that begins so.
func TestCase42NeighboursOfACommonPrefixOnS3(t *testing.T) {
	t.Parallel()
	for what, server := range map[string]func(testing.TB) *s3test.Server{"versitygw": s3test.Versity, "MiniStack": s3test.Mini} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mounttest.New(t, mounttest.Options{Server: server(t), Flags: []string{"--write=delete"}})
			tableAt(t, l, "orders", l.Source+"_data/db/orders")
			tableAt(t, l, "orders_old", l.Source+"_data/db/orders_old/")
			tableAt(t, l, "ord", l.Source+"_data/db/ord")
			for _, name := range []string{"orders/a", "orders/d/b", "orders/d/e/c", "orders_old/a", "orders_old/d/b", "ord/x"} {
				l.PutStored("db/"+name, name)
			}
			l.Start()
			wantNames(t, l, "db/ord", "x")
			wantNames(t, l, "db/orders", "a", "d")
			l.MustSh(`rm -rf db/orders/*`)
			wantNames(t, l, "db/orders")
			wantNames(t, l, "db/orders_old", "a", "d")
			wantContent(t, l, "db/orders_old/d/b", "orders_old/d/b")
			wantContent(t, l, "db/ord/x", "ord/x")
			server, bucket := l.Bucket()
			if got := server.Keys(t, bucket, l.Key("db/ord")); len(got) != 3 {
				t.Errorf("left in the store: %q", got)
			}
			write(t, l, "db/orders/new", "n")
			if got, there := inStore(t, l, "db/orders/new"); got != "n" || !there {
				t.Errorf("written into the empty table: %q, %v", got, there)
			}
		})
	}
}

// Case 43: the spellings of a location, and those that are none of a bucket's.
func TestCase43LocationsOnS3(t *testing.T) {
	t.Parallel()
	server := s3test.Mini(t)
	bucket := server.Bucket(t)
	l := mounttest.New(t, mounttest.Options{Server: server, Bucket: bucket, Flags: []string{"--write=delete"}})
	prefixes := map[string]string{"a": "wh/_d/a/", "n": "wh/_d/n/", "upper": "wh/_d/s/", "slashes": "wh//o/", "relative": "wh/_d/r/"}
	at := func(name, location string) { tableAt(t, l, name, location) }
	at("a", "s3a://"+bucket+"/wh/_d/a")
	at("n", "s3n://"+bucket+"/wh/_d/n/")
	at("upper", "S3://"+bucket+"/wh/_d/s")
	at("slashes", "s3://"+bucket+"/wh//o/")
	at("relative", "_d/r")
	at("hdfs", "hdfs://name:8020/wh/x")
	at("etc", "file:///etc")
	at("path", "/etc")
	at("other", "s3://other-bucket/wh/x")
	at("above", "s3://"+bucket+"/wh/../x")
	for name, prefix := range prefixes {
		server.Put(t, bucket, prefix+"f", []byte("at "+name))
	}
	l.Start()
	for name, prefix := range prefixes {
		wantNames(t, l, "db/"+name, "f")
		wantContent(t, l, "db/"+name+"/f", "at "+name)
		write(t, l, "db/"+name+"/new", "by "+name)
		write(t, l, "db/"+name+"/f", "over "+name)
		if got := server.Keys(t, bucket, prefix); !slices.Equal(got, []string{prefix + "f", prefix + "new"}) {
			t.Errorf("%s is written to %q", name, got)
		}
		if got := string(server.Get(t, bucket, prefix+"f")); got != "over "+name {
			t.Errorf("%s in the store: %q", name, got)
		}
	}
	if all := server.Keys(t, bucket, ""); len(all) != 2*len(prefixes)+10 {
		t.Errorf("the bucket has other keys than those: %q", all)
	}
	for name, want := range map[string]syscall.Errno{
		"hdfs": syscall.EOPNOTSUPP, "etc": syscall.EOPNOTSUPP, "path": syscall.EOPNOTSUPP, "other": syscall.EACCES, "above": syscall.EACCES,
	} {
		_, err := l.Names("db/" + name)
		wantErrno(t, name+": list", err, want)
		wantErrno(t, name+": look-up", statErr(l, "db/"+name+"/passwd"), want)
		wantErrno(t, name+": create", openErr(l, "db/"+name+"/new", creat), want)
		wantContent(t, l, "db/"+name+".json", l.StoredManifest("db/"+name))
	}
}

// Case 51: what engines leave beside data.
func TestCase51EnginesOwnNamesOnS3(t *testing.T) {
	t.Parallel()
	year := mounttest.Table{Database: "db", Name: "y", Format: "csv", Keys: []string{"_year:int"}, Files: map[string]string{"_year=2024/f": "y", "_SUCCESS": ""}}
	raw := text("x", map[string]string{"f": "x"})
	raw.Database = "_raw"
	staging := map[string]string{"_temporary/0/x": "1", ".hive-staging_1/x": "2", ".spark-staging-1/x": "3"}
	files := map[string]string{"_SUCCESS": "", "_delta_log/0.json": "{}", "a": "a"}
	for name, content := range staging {
		files[name] = content
	}
	l := mounttest.Mount(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", files), year, raw}})
	wantNames(t, l, "db/t", "_SUCCESS", "_delta_log", "a")
	wantNames(t, l, "db/y", "_SUCCESS", "_year=2024")
	if got := l.MustSh(`find db/t -type f | sort; du -ab --apparent-size db/t | wc -l`); got != "db/t/_SUCCESS\ndb/t/_delta_log/0.json\ndb/t/a\n5\n" {
		t.Errorf("find and du: %q", got)
	}
	for name, content := range staging {
		wantContent(t, l, "db/t/"+name, content)
	}
	if s := status(t, l, "db/y").Catalog; s.Partitions != 1 {
		t.Errorf("partitions by _year: %d, want 1", s.Partitions)
	}
	wantErrno(t, "a database of manifests whose name begins with _", statErr(l, "_raw"), syscall.ENOENT)
}
