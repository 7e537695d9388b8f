package main

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func TestRecoverDoesOneThingAtATime(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	for _, flags := range [][]string{
		{"--publish=all", "--abort=all"}, {"--abort=all", "--save=."}, {"--publish=all", "--save=."}, {"--publish=all", "--abort=all", "--save=."},
	} {
		r := lake.Run(append(append([]string{"recover"}, flags...), lake.Root)...)
		if r.Code != exitUsage || !strings.Contains(r.Err, "one of them at a time") || r.Out != "" {
			t.Errorf("%q: exit code %d, %q %q", flags, r.Code, r.Out, r.Err)
		}
	}
	if r := lake.Run("recover", lake.Root); !strings.Contains(r.Out, "torn.csv") {
		t.Errorf("after the refusals: %q", r.Out)
	}
	lake.MustSh("test ! -e sales/notes/dt=2026-01-01/torn.csv")
}
