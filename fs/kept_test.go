package fs_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// tear leaves a torn file of n bytes in the CSV partition.
func tear(t *testing.T, l *mounttest.Lake, name string, n string) {
	t.Helper()
	l.Sh(`cd ` + csvDir + `; bash -c 'exec 3>` + name + `; head -c ` + n + ` /dev/zero >&3; kill -9 $$'`)
	l.Eventually(name+" is torn", 0, func() bool { return slices.Contains(keptNames(t, l), name) })
}

// keptNames are the base names of what is not published.
func keptNames(t *testing.T, l *mounttest.Lake) []string {
	t.Helper()
	var names []string
	for _, w := range stagedStatus(t, l) {
		names = append(names, path.Base(w.Path))
	}
	slices.Sort(names)
	return names
}

// TestStagedKeepDropsTheOld: at a mount, and in the life of one; each is logged.
func TestStagedKeepDropsTheOld(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	tear(t, l, "old.csv", "10")
	l.Unmount()
	l.Start("--staged-keep=1ms")
	if names := keptNames(t, l); len(names) > 0 {
		t.Errorf("past --staged-keep %q are kept", names)
	}
	l.WaitLog("dropped a staged write")
	if !strings.Contains(l.Log(), `path="`+csvDir+`/old.csv"`) {
		t.Error("the log does not name the file that was dropped")
	}
	l.Remount("--staged-keep=2s")
	// A file that is being written is not a kept one, however old.
	l.MustSh(`cd ` + csvDir + `; exec 3>open.csv; echo 1 >&3; bash -c 'exec 4>new.csv; echo 2 >&4; kill -9 $$' 3>&-
		ls .lakefs/staged | grep -q new.csv || exit 1
		for i in $(seq 100); do ls .lakefs/staged | grep -q new.csv || break; sleep .1; done
		ls .lakefs/staged; [ "$(ls .lakefs/staged | cut -d~ -f1)" = open.csv ] || exit 2; exec 3>&-`)
	wantClean(t, l, csvDir, "open.csv")
}

// TestStagedMaxDropsTheOldest until what is left fits.
func TestStagedMaxDropsTheOldest(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	for _, name := range []string{"1.csv", "2.csv", "3.csv"} {
		tear(t, l, name, "1M")
	}
	l.Remount("--staged-max=2100KiB")
	if names := keptNames(t, l); !slices.Equal(names, []string{"2.csv", "3.csv"}) {
		t.Errorf("within 2.1 MiB %q are kept, want the two youngest", names)
	}
	l.Remount("--staged-max=1MiB", "--staged-keep=0")
	if names := keptNames(t, l); !slices.Equal(names, []string{"3.csv"}) {
		t.Errorf("within 1 MiB %q are kept, want the youngest", names)
	}
}
