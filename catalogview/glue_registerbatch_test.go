package catalogview_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// newDays are partitions of sales.days by their values.
func newDays(values ...string) []catalogview.NewPartition {
	var all []catalogview.NewPartition
	for _, v := range values {
		all = append(all, catalogview.NewPartition{Values: []string{v}, Location: "s3://lake/new/" + v})
	}
	return all
}

// TestErrorsInsideAGoodAnswerAreOfTheirPartitions: what passes is asked for again, of
// those alone; what is there is looked at; what is refused is an error of that one.
func TestErrorsInsideAGoodAnswerAreOfTheirPartitions(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	server.AddPartition("sales", "days", parquetPartition(t, []string{"3"}, "s3://lake/old"))
	only := func(values ...string) func([]string) bool {
		return func(v []string) bool { return slices.Contains(values, v[0]) }
	}
	server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Times: 1, Fault: gluetest.RefuseSome("InternalServiceException", only("2", "4"))})
	server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: gluetest.RefuseSome("ResourceNumberLimitExceededException", only("4"))})
	g := glueOn(t, server.URL)
	done := g.Register(t.Context(), daysOf(t, g), newDays("1", "2", "3", "4", "5"))
	for i, want := range []string{"s3://lake/new/1", "s3://lake/new/2", "s3://lake/old", "", "s3://lake/new/5"} {
		if got := done[i]; got.Location != want || (got.Err == nil) != (want != "") {
			t.Errorf("partition %d: %+v, want %q", i+1, got, want)
		}
	}
	if err := done[3].Err; err == nil || !strings.Contains(err.Error(), "ResourceNumberLimitExceeded") || errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("the one that is refused: %v", err)
	}
	var sent []int
	for _, c := range server.Calls("BatchCreatePartition") {
		list, _ := c.Input["PartitionInputList"].([]any)
		sent = append(sent, len(list))
	}
	if !slices.Equal(sent, []int{5, 2}) || len(server.Calls("GetPartition")) != 1 {
		t.Errorf("sent batches of %v, %d looks", sent, len(server.Calls("GetPartition")))
	}
}

// TestABatchWhoseAnswerIsLost: what took effect is success, by a look at each; where
// the catalog answers no look either, one is enough to know.
func TestABatchWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			t.Parallel()
			server := gluetest.New(t)
			partitionedOn(t, server, 0)
			g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = time.Second })
			tab := daysOf(t, g)
			server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: gluetest.LoseAnswer()})
			if silent {
				server.Fault(gluetest.Rule{Op: "GetPartition", Fault: gluetest.HangAnswer()})
			}
			for i, got := range g.Register(t.Context(), tab, newDays("1", "2", "3")) {
				switch {
				case !silent && (got.Err != nil || got.Location != fmt.Sprint("s3://lake/new/", i+1)):
					t.Errorf("partition %d: %+v", i+1, got)
				case silent && !errors.Is(got.Err, objectstore.ErrUnavailable):
					t.Errorf("partition %d of a silent catalog: %+v", i+1, got)
				}
			}
			if silent {
				asked := map[string]bool{}
				for _, c := range server.Calls("GetPartition") {
					asked[fmt.Sprint(c.Input["PartitionValues"])] = true
				}
				if len(asked) != 1 {
					t.Errorf("looked at %v of a silent catalog", asked)
				}
			}
		})
	}
}

// TestOneThatIsRefusedKeepsNoOtherOut: the service refuses the whole request for it.
func TestOneThatIsRefusedKeepsNoOtherOut(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	server.AddPartition("sales", "days", parquetPartition(t, []string{"5"}, "s3://lake/old"))
	bad := func(c *gluetest.Call) bool {
		return strings.Contains(fmt.Sprint(c.Input["PartitionInputList"]), "s3://lake/new/33")
	}
	server.Fault(gluetest.Rule{Op: "BatchCreatePartition", If: bad, Fault: gluetest.Error(http.StatusBadRequest, "InvalidInputException", "no")})
	g := glueOn(t, server.URL)
	var values []string
	for i := range 100 {
		values = append(values, fmt.Sprint(i))
	}
	for i, got := range g.Register(t.Context(), daysOf(t, g), newDays(values...)) {
		if want := i != 33; (got.Err == nil) != want || i == 5 && got.Location != "s3://lake/old" {
			t.Errorf("partition %d: %+v", i, got)
		}
	}
	if n := len(server.Calls("BatchCreatePartition")); n > 16 {
		t.Errorf("%d requests to find one of a hundred", n)
	}
}

// TestATableThatWentEndsTheRegistration of all, by one request; when it is back its
// descriptor is read anew.
func TestATableThatWentEndsTheRegistration(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	if got := g.Register(t.Context(), tab, newDays("0")); got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	server.Remove("sales", "days")
	server.Reset()
	var values []string
	for i := range 250 {
		values = append(values, fmt.Sprint(i))
	}
	for i, got := range g.Register(t.Context(), tab, newDays(values...)) {
		if !errors.Is(got.Err, objectstore.ErrNotExist) {
			t.Fatalf("partition %d: %+v", i, got)
		}
	}
	if n := len(server.Calls("BatchCreatePartition")); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
	partitionedOn(t, server, 0)
	if got := g.Register(t.Context(), tab, newDays("1")); got[0].Err != nil || len(server.Calls("GetTable")) != 1 {
		t.Errorf("when it is back: %+v, GetTable %d times", got[0], len(server.Calls("GetTable")))
	}
}

// TestTheDescriptorIsReadOnceForManyRegistrations that follow one another.
func TestTheDescriptorIsReadOnceForManyRegistrations(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	server.Reset()
	began := time.Now()
	for i := range 20 {
		if got := g.Register(t.Context(), tab, newDays(fmt.Sprint(i))); got[0].Err != nil {
			t.Fatal(got[0].Err)
		}
	}
	// It is read anew each five seconds, however long this takes.
	if n, most := server.Requests()["GetTable"], 1+int(time.Since(began)/(5*time.Second)); n > most {
		t.Errorf("%d GetTable, want %d at most", n, most)
	}
}
