package fs_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// A catalog that fails while a file is published: the file is, and its close tells.

// brokenCatalog are faults that do not pass, with what a close says then.
func brokenCatalog() map[string]struct {
	fault gluetest.Fault
	want  syscall.Errno
} {
	return map[string]struct {
		fault gluetest.Fault
		want  syscall.Errno
	}{
		"throttled":  {gluetest.Throttle(), syscall.EIO},
		"500":        {gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "no"), syscall.EIO},
		"denied":     {gluetest.Denied(), syscall.EACCES},
		"hang":       {gluetest.Hang(), syscall.EIO},
		"no answer":  {gluetest.LoseRequest(), syscall.EIO},
		"a web page": {gluetest.HTML(http.StatusOK), syscall.EIO},
		"of limits":  {gluetest.Error(http.StatusBadRequest, "ResourceNumberLimitExceededException", "too many"), syscall.EIO},
	}
}

// TestCatalogFailsAtAPublish: whichever request of the registration fails, the object
// is there, the close tells within --io-timeout, and the next publish registers.
func TestCatalogFailsAtAPublish(t *testing.T) {
	t.Parallel()
	for name, c := range brokenCatalog() {
		for _, op := range []string{registration, "GetTable"} {
			t.Run(name+" "+op, func(t *testing.T) {
				t.Parallel()
				l := mountGlue(t, mounttest.Options{Flags: quick}, inCatalog(), goodTable())
				l.MustSh(`mkdir db/t/dt=7; ls db/t db/good db/good/k=1 db/t/dt=1 db/t/dt=7; cat db/good/k=1/f`)
				a := l.Catalog.Server.Fault(gluetest.Rule{Op: op, Fault: c.fault})
				wantErrno(t, "close", writeErr(l, "db/t/dt=7/f", creat, "7\n", nil), c.want)
				if a.Hits() == 0 {
					t.Error("nothing met the fault")
				}
				if got, _ := inStore(t, l, "db/t/dt=7/f"); got != "7\n" {
					t.Errorf("the object is %q", got)
				}
				l.WaitLog("is not registered in the catalog")
				wantContent(t, l, "db/t/dt=7/f", "7\n")
				wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7")
				l.MustSh(`echo 2 > db/t/dt=1/more; echo 2 > db/good/k=1/more; cat db/t/dt=2/b`) // registered partitions
				l.Catalog.Server.Clear()
				wantErrno(t, "the next publish", writeErr(l, "db/t/dt=7/g", creat, "8\n", nil), 0)
				wantRegistered(t, l, "t", "1", "2", "3", "7")
				if ids := spools(t, l); len(ids) != 0 {
					t.Errorf("staged: %q", ids)
				}
			})
		}
	}
}

// TestPassingFaultsAtAPublish are not seen by the writer.
func TestPassingFaultsAtAPublish(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]gluetest.Rule{
		"throttled":      {Times: 5, Fault: gluetest.Throttle()},
		"500":            {Times: 3, Fault: gluetest.Error(http.StatusInternalServerError, "InternalServiceException", "no")},
		"lost requests":  {Times: 3, Fault: gluetest.LoseRequest()},
		"lost answers":   {Op: registration, Times: 2, Fault: gluetest.LoseAnswer()},
		"cut":            {Times: 2, Fault: gluetest.CutBody(5)},
		"a web page":     {Times: 2, Fault: gluetest.HTML(http.StatusOK)},
		"modified":       {Op: registration, Times: 3, Fault: gluetest.Error(http.StatusBadRequest, "ConcurrentModificationException", "busy")},
		"error in a 200": {Op: registration, Times: 2, Fault: gluetest.Body(http.StatusOK, "application/x-amz-json-1.1", `{"Errors":[{"PartitionValues":["7"],"ErrorDetail":{"ErrorCode":"InternalServiceException","ErrorMessage":"no"}}]}`)},
		"there in a 200": {Op: registration, Skip: 0, Times: 1, Fault: twice},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{}, inCatalog())
			l.MustSh(`mkdir db/t/dt=7`)
			a := l.Catalog.Server.Fault(rule)
			wantErrno(t, "close", writeErr(l, "db/t/dt=7/f", creat, "7\n", nil), 0)
			if a.Hits() < rule.Times {
				t.Errorf("%d requests met the fault, want %d", a.Hits(), rule.Times)
			}
			wantStore(t, l, "db/t/dt=7/f", "7\n")
			wantRegistered(t, l, "t", "1", "2", "3", "7")
			if strings.Contains(l.Log(), "not registered") {
				t.Errorf("logged:\n%s", l.Log())
			}
		})
	}
}

// twice does a request twice, and gives the second answer: as one whose answer was
// lost and that was repeated on the way.
func twice(_ *gluetest.Exchange, next gluetest.Next) (gluetest.Answer, error) {
	if _, err := next(); err != nil {
		return gluetest.Answer{}, err
	}
	return next()
}

// TestCatalogFailsBetweenOpenAndClose: what is needed to register can not be asked.
func TestCatalogFailsBetweenOpenAndClose(t *testing.T) {
	t.Parallel()
	for name, c := range brokenCatalog() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: []string{"--io-timeout=3s", "--metadata-ttl=0", "--negative-ttl=0"}}, inCatalog())
			l.MustSh(`mkdir db/t/dt=7`)
			err := writeErr(l, "db/t/dt=7/f", creat, "7\n", func() { l.Catalog.Server.Fault(gluetest.Rule{Fault: c.fault}) })
			wantErrno(t, "close", err, c.want)
			if got, _ := inStore(t, l, "db/t/dt=7/f"); got != "7\n" {
				t.Errorf("the object is %q", got)
			}
			l.Catalog.Server.Clear()
			l.MustSh(`echo 8 > db/t/dt=7/g; cat db/t/dt=7/f`)
			wantRegistered(t, l, "t", "1", "2", "3", "7")
		})
	}
}

// TestCatalogHangsAtAPublish: nobody else waits for it.
func TestCatalogHangsAtAPublish(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--metadata-ttl=5m", "--negative-ttl=5m"}}, inCatalog(), goodTable(), twoKeys())
	l.MustSh(`mkdir db/t/dt=7 db/t/dt=8; find db >/dev/null; cat db/good/k=1/f`)
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Table: "t", Fault: gluetest.Hang()})
	var writers sync.WaitGroup
	for _, dt := range []string{"7", "8"} {
		writers.Go(func() {
			if r := l.Sh(fmt.Sprintf(`echo %s > db/t/dt=%[1]s/f`, dt)); r.Code != 0 {
				t.Errorf("dt=%s: exit code %d, %s", dt, r.Code, r.Err)
			}
		})
	}
	hung.Wait(t, 2)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7", "dt=8")
	wantContent(t, l, "db/t/dt=1/a", "1,one\n")
	wantContent(t, l, "db/good/k=1/f", "good\n")
	if r := l.Sh(`set -e; mkdir db/good/k=2; echo 2 > db/good/k=2/f; echo 1 > db/t/dt=1/b; mkdir -p db/two/dt=5/k=z; echo z > db/two/dt=5/k=z/f; ls -lR db >/dev/null`); r.Code != 0 {
		t.Errorf("other tables: %s", r.Err)
	}
	wantRegistered(t, l, "good", "1", "2")
	wantRegistered(t, l, "two", "1/x", "1/y", "5/z")
	wantRegistered(t, l, "t", "1", "2", "3")
	l.Catalog.Server.Clear()
	l.Catalog.Server.Release()
	writers.Wait()
	wantRegistered(t, l, "t", "1", "2", "3", "7", "8")
}

// TestUnmountWhileTheCatalogHangs: the mount goes, and the next one registers.
func TestUnmountWhileTheCatalogHangs(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--io-timeout=5s"}}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Hang()})
	done := make(chan mounttest.Result, 1)
	go func() { done <- l.Sh(`echo 7 > db/t/dt=7/f`) }()
	hung.Wait(t, 1)
	l.Unmount()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the writer hangs")
	}
	l.Catalog.Server.Clear()
	if got := inBucket(t, l, 0, l.Key("db/t/dt=7/f")); got != "7\n" {
		t.Errorf("the object is %q", got)
	}
	l.Start()
	l.MustSh(`echo 8 > db/t/dt=7/g; cat db/t/dt=7/f`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}
