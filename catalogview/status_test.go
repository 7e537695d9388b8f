package catalogview

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// unreadable asserts the status of what can not be read.
func unreadable(t *testing.T, v *View, path, kind, reason string) Status {
	t.Helper()
	s, err := v.Status(t.Context(), path)
	if err != nil || s.Path != path || s.Kind != kind || s.Readable || s.Writable || !strings.Contains(s.Reason, reason) {
		t.Errorf("status of %s: %+v, %v; want %s that cannot be read: %s", path, s, err, kind, reason)
	}
	return s
}

// TestStatusExplainsWhatFails: the error that a program meets is the reason.
func TestStatusExplainsWhatFails(t *testing.T) {
	v, c, s := catalogView(t, func(o *Options) { o.TTL, o.NegativeTTL = -1, -1 })
	c.table("t", "s3://b/t", "dt:string")
	c.partition("t", "s3://gone/t/dt=1", "1")
	c.table("plain", "s3://gone/plain")
	for _, failure := range []error{objectstore.ErrPermission, objectstore.ErrUnavailable, ErrLinkLoop, errors.New("of no sentinel")} {
		for op, c1 := range map[string]struct{ path, kind string }{
			"tables": {"db", "database"}, "table": {"db/t", "broken"}, "partitions": {"db/t", "hive"}, "partition": {"db/t/dt=1", "hive"},
		} {
			c.setOn(func(_ context.Context, asked string) error {
				if asked == op {
					return failure
				}
				return nil
			})
			st := unreadable(t, v, c1.path, c1.kind, failure.Error())
			if op == "partitions" && (st.Location != "s3://b/t/" || st.Format != "parquet" || st.PartitionsFrom != "catalog" || st.Formats != nil) {
				t.Errorf("what is known of the table: %+v", st)
			}
		}
	}
	c.setOn(nil)
	s.setOn(func(_ context.Context, _ string, loc objectstore.Location) error {
		if loc.Bucket == "gone" {
			return objectstore.ErrNoBucket
		}
		return nil
	})
	for _, path := range []string{"db/t/dt=1", "db/plain"} {
		if st := unreadable(t, v, path, "hive", "no such bucket"); !strings.HasPrefix(st.Location, "s3://gone/") {
			t.Errorf("%s: location %q", path, st.Location)
		}
	}
	for _, path := range []string{"none", "db/none", "none/t"} {
		_, err := v.Status(t.Context(), path)
		wantErr(t, path, err, objectstore.ErrNotExist)
	}
	if st, err := v.Status(t.Context(), "db"); err != nil || !st.Readable || st.Tables == nil || *st.Tables != 2 {
		t.Errorf("when all is well: %+v, %v", st, err)
	}
}

// TestStatusIsInterrupted: who is killed gets no status.
func TestStatusIsInterrupted(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	for _, path := range []string{"", "db", "db/t", "db/t/dt=1"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := v.Status(ctx, path)
		wantErr(t, path, err, context.Canceled)
	}
}

// TestStatusCountsNamesThatNoPathHas, which are logged once each.
func TestStatusCountsNamesThatNoPathHas(t *testing.T) {
	var log strings.Builder
	v, c, _ := catalogView(t, func(o *Options) { o.TTL, o.Log = -1, slog.New(slog.NewTextHandler(&log, nil)) })
	for _, name := range []string{"t", "..", ".", "slash/name", "two\nlines", ".lakefs", strings.Repeat("x", 256)} {
		c.table(name, "s3://b/t")
	}
	for range 2 {
		if st, err := v.Status(t.Context(), "db"); err != nil || st.UnreachableNames != 6 || *st.Tables != 1 {
			t.Errorf("status: %+v, %v", st, err)
		}
		wantLs(t, v, "db", "t/", "t.json")
	}
	if got := strings.Count(log.String(), "\n"); got != 6 || !strings.Contains(log.String(), "slash/name") {
		t.Errorf("%d lines are logged, want 6:\n%s", got, log.String())
	}
}

// TestRule58_NoInputFormatIsNone of several.
func TestRule58_NoInputFormatIsNone(t *testing.T) {
	for _, c := range []struct {
		formats []string
		want    string
	}{
		{nil, "false"},
		{[]string{"", ""}, "false"},
		{[]string{"P", ""}, "false"},
		{[]string{"P", "Q"}, "true"},
		{[]string{"P", "", "Q"}, "true"},
	} {
		v, cat, _ := catalogView(t, nil)
		cat.table("t", "s3://b/t", "dt:string")
		count := map[string]int{}
		for i, f := range c.formats {
			value := string(rune('a' + i))
			cat.partition("t", "s3://b/t/dt="+value, value)
			p := cat.partitions["t"][value]
			p.InputFormat = f
			cat.partitions["t"][value] = p
			count[f]++
		}
		st, err := v.Status(t.Context(), "db/t")
		if err != nil || string(st.MultiFormat) != c.want || len(st.Formats) != len(count) || st.Formats[""] != count[""] {
			t.Errorf("%q: %s, %v, %v, want %s", c.formats, st.MultiFormat, st.Formats, err, c.want)
		}
	}
}

// TestPatternsThatMatchNoDatabaseAreToldOfOnce when the root is listed.
func TestPatternsThatMatchNoDatabaseAreToldOfOnce(t *testing.T) {
	for _, c := range []struct {
		databases, tables []string
		want              int
	}{
		{[]string{"sales*", "ops"}, nil, 1},
		{[]string{"sales*", "d?"}, []string{"none"}, 0},
		{nil, nil, 0},
	} {
		src, err := Narrow(newFakeCatalog(), c.databases, c.tables)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		v := NewView(src, newPageStore(), Options{Rootless: true, TTL: -1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 {
			ls(t, v, "")
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Count(log.String(), "no database"); got != c.want || c.want > 0 && !strings.Contains(log.String(), "sales*") {
			t.Errorf("%q: %d warnings, want %d:\n%s", c.databases, got, c.want, log.String())
		}
	}
}
