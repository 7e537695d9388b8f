package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// registeringView is the view of a Glue server with db.t, of the key dt, that registers.
func registeringView(t *testing.T, change func(*Options)) (*View, *gluetest.Server) {
	t.Helper()
	server := gluetest.New(t)
	server.AddTable("db", `{"Name":"t","PartitionKeys":[{"Name":"dt","Type":"string"}],"TableType":"EXTERNAL_TABLE",
"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":"s3://b/t",
"InputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
"OutputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"}}}`)
	src := NewGlue(GlueOptions{
		Config:   aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")},
		Endpoint: server.URL,
	})
	o := Options{Rootless: true, Register: true, TTL: time.Hour}
	if change != nil {
		change(&o)
	}
	v := NewView(src, newPageStore(), o)
	t.Cleanup(func() {
		if err := errors.Join(v.Close(), src.Close()); err != nil {
			t.Error(err)
		}
	})
	return v, server
}

// objects are one of each of n new partitions of db.t.
func objects(n int) map[string]objectstore.Location {
	at := make(map[string]objectstore.Location)
	for i := range n {
		key := fmt.Sprintf("t/dt=%04d/f", i)
		at["db/"+key] = objectstore.Location{Bucket: "b", Key: key}
	}
	return at
}

// TestEdge9_RegistrationsGoOutByTheHundred: a transaction of 1,000 new partitions is
// ten requests, one of 101 two, and nothing else but the look at the table.
func TestEdge9_RegistrationsGoOutByTheHundred(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 1, 100: 1, 101: 2, 1000: 10} {
		v, server := registeringView(t, nil)
		if err := v.RegisterAll(t.Context(), objects(n)); err != nil {
			t.Fatal(err)
		}
		requests := server.Requests()
		if got := requests["BatchCreatePartition"]; got != want {
			t.Errorf("%d partitions: %d BatchCreatePartition, want %d", n, got, want)
		}
		if requests["GetPartition"]+requests["GetPartitions"] != 0 || requests["GetTable"] > 2 {
			t.Errorf("%d partitions: %v", n, requests)
		}
		server.Reset()
		if err := v.RegisterAll(t.Context(), objects(n)); err != nil {
			t.Fatal(err)
		}
		for path := range objects(n) {
			if n, err := v.Lookup(t.Context(), directoryOf(path)); err != nil || !n.Registered {
				t.Fatalf("%s: %+v, %v", path, n, err)
			}
		}
		if requests = server.Requests(); len(requests) > 0 {
			t.Errorf("what is registered is asked for: %v", requests)
		}
	}
}

// TestCase53_TwentyPublishesIntoOneNewPartition at once: one request creates it, and
// nobody looks for it.
func TestCase53_TwentyPublishesIntoOneNewPartition(t *testing.T) {
	t.Parallel()
	v, server := registeringView(t, nil)
	var g sync.WaitGroup
	for i := range 20 {
		g.Go(func() {
			key := fmt.Sprint("t/dt=1/", i)
			if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if requests := server.Requests(); requests["BatchCreatePartition"] != 1 || requests["GetPartition"] != 0 {
		t.Errorf("requests: %v", requests)
	}
}

// TestCase53_AnotherWasFirst: at the same location, and at another, which is kept, and
// warned of once.
func TestCase53_AnotherWasFirst(t *testing.T) {
	t.Parallel()
	for location, warnings := range map[string]int{"s3://b/t/dt=1": 0, "s3://other/x": 1} {
		var log strings.Builder
		v, server := registeringView(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		server.AddPartition("db", "t", `{"Values":["1"],"StorageDescriptor":{"Location":"`+location+`"}}`)
		for _, key := range []string{"t/dt=1/f", "t/dt=1/g"} {
			if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); err != nil {
				t.Error(err)
			}
		}
		requests := server.Requests()
		if requests["BatchCreatePartition"] != 1 || requests["GetPartition"] != 1 || strings.Count(log.String(), "another location") != warnings {
			t.Errorf("%s: requests %v, log\n%s", location, requests, log.String())
		}
		if got := v.settledLocation(t, "1"); got != location {
			t.Errorf("the catalog has %s, want %s", got, location)
		}
	}
}

func (v *View) settledLocation(t *testing.T, values ...string) string {
	t.Helper()
	e, err := v.getTable(t.Context(), "db", "t")
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := v.src.Partition(t.Context(), e.base, values)
	if err != nil {
		t.Fatal(err)
	}
	return p.Location
}

// TestWhatComesMeanwhileGoesOutTogether: while a request is under way others of the
// table wait, and are one; those of another table do not wait. A single one waits for
// nobody.
func TestWhatComesMeanwhileGoesOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		c.table("u", "s3://b/u", "dt:string")
		lookup(t, v, "db/t")
		lookup(t, v, "db/u")
		release := make(chan struct{})
		c.setOn(func(_ context.Context, op string) error {
			if op == "register" {
				<-release
			}
			return nil
		})
		requests := c.requests(func() {
			var g sync.WaitGroup
			register := func(key string) {
				g.Go(func() {
					if err := v.Register(t.Context(), "db/"+key, objectstore.Location{Bucket: "b", Key: key}); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			for i := range 51 {
				register(fmt.Sprintf("t/dt=%d/f", i))
			}
			register("u/dt=1/f")
			c.mu.Lock()
			under := c.counts["register"]
			c.mu.Unlock()
			if under != 2 {
				t.Errorf("%d requests are under way, want one a table", under)
			}
			close(release)
			g.Wait()
		})
		wantRequests(t, "51 publishes and one", requests, map[string]int{"register": 3})
		if len(c.partitions["t"]) != 51 || len(c.partitions["u"]) != 1 {
			t.Errorf("registered: %v", c.partitions)
		}
	})
}

// TestAWriterThatGivesUpHoldsUpNobody, and what it wanted is registered all the same.
func TestAWriterThatGivesUpHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, _ := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		lookup(t, v, "db/t")
		c.setOn(func(ctx context.Context, op string) error {
			if op == "register" {
				return slow(10*time.Second)(ctx, "", objectstore.Location{})
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		loc := objectstore.Location{Bucket: "b", Key: "t/dt=1/f"}
		if err := v.Register(ctx, "db/t/dt=1/f", loc); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if left := v.Unregistered(""); len(left) != 1 {
			t.Errorf("unregistered: %+v", left)
		}
		if err := v.Register(t.Context(), "db/t/dt=1/f", loc); err != nil || len(c.partitions["t"]) != 1 || len(v.Unregistered("")) != 0 {
			t.Errorf("another: %v, %v, %+v", err, c.partitions["t"], v.Unregistered(""))
		}
	})
}

// TestRegisterAllTellsOfEach that failed, by path, and keeps it for the next attempt.
func TestRegisterAllTellsOfEach(t *testing.T) {
	t.Parallel()
	v, server := registeringView(t, nil)
	refused := server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: refuse("ResourceNumberLimitExceededException", "0003", "0150")})
	err := v.RegisterAll(t.Context(), objects(200))
	var failed *UnregisteredError
	if !errors.As(err, &failed) || len(failed.ByPath()) != 2 || failed.ByPath()["db/t/dt=0003/f"] == nil || failed.ByPath()["db/t/dt=0150/f"] == nil {
		t.Fatalf("got %v", err)
	}
	if left := v.Unregistered("db/t"); len(left) != 2 || left[0].Path != "db/t/dt=0003" || !strings.Contains(left[0].Reason, "ResourceNumberLimitExceeded") {
		t.Errorf("unregistered: %+v", left)
	}
	if n := len(server.Calls("BatchCreatePartition")); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	refused.Remove()
	server.Reset()
	if err := v.RegisterAll(t.Context(), objects(200)); err != nil || len(v.Unregistered("")) != 0 {
		t.Errorf("again: %v, unregistered %+v", err, v.Unregistered(""))
	}
	if calls := server.Calls("BatchCreatePartition"); len(calls) != 1 {
		t.Errorf("%d requests for the two", len(calls))
	}
}

// refuse lets partitions of a batch fail inside a good answer; the others are created.
func refuse(code string, values ...string) gluetest.Fault {
	return gluetest.RefuseSome(code, func(v []string) bool { return slices.Contains(values, v[0]) })
}

// TestAnUnregisteredPartitionThatWasEmptiedIsForgotten by the next attempt: there is
// nothing in it to be seen.
func TestAnUnregisteredPartitionThatWasEmptiedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		c.setOn(func(_ context.Context, op string) error {
			if op == "register" {
				return objectstore.ErrPermission
			}
			return nil
		})
		s.set("t/dt=1/f", "x")
		if err := v.Register(t.Context(), "db/t/dt=1/f", objectstore.Location{Bucket: "b", Key: "t/dt=1/f"}); err == nil {
			t.Fatal("it is registered")
		}
		v.Removed(s.unset("t/dt=1/f"))
		c.setOn(nil)
		pass(time.Minute)
		if left := v.Unregistered(""); len(left) != 0 || len(c.partitions["t"]) != 0 {
			t.Errorf("unregistered %+v, the catalog has %v", left, c.partitions["t"])
		}
	})
}
