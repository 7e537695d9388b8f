package main

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What an unmount names as not published, the command and the mount end with 1 for.
func TestUnmountThatNamesFilesFails(t *testing.T) {
	o := sales(t)
	o.Flags = []string{"--temporary-linger=1h"}
	lake := mounttest.Mount(t, o)
	const dir = "sales/notes/dt=2026-01-01"
	lake.MustSh("cd " + dir + "; echo mine > v.tmp; echo fine > w.tmp")
	lake.PutStored(dir+"/v.tmp", "theirs")
	r := lake.Run("unmount", lake.Root)
	if r.Code != exitFailed || !strings.Contains(r.Err, "not published") || !strings.Contains(r.Err, "v.tmp") || !strings.Contains(r.Err, "recover") || strings.Contains(r.Err, "w.tmp") {
		t.Errorf("unmount: exit code %d: %s", r.Code, r.Err)
	}
	if code := lake.Wait(); code != exitFailed || !strings.Contains(lake.Log(), `not published: "`+dir+`/v.tmp"`) {
		t.Errorf("the mount ended with %d: %s", code, lake.Log())
	}
	if lake.Mounted() {
		t.Error("still mounted")
	}
	if got, err := lake.Stored(dir + "/w.tmp"); err != nil || got != "fine\n" {
		t.Errorf("w.tmp in the store: %q, %v", got, err)
	}
	// What is kept of an earlier mount is nothing that this one leaves.
	lake.Start()
	if r := lake.Run("unmount", lake.Root); r.Code != 0 {
		t.Errorf("the next unmount: exit code %d: %s", r.Code, r.Err)
	}
	if code := lake.Wait(); code != 0 {
		t.Errorf("the next mount ended with %d", code)
	}
}
