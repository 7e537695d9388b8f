package fs_test

import "testing"

// A process that only inherited the descriptor leaves nothing unfinished when it
// is killed; one that wrote does.
func TestKilledBystanderDoesNotTear(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`exec 3>db/text/dt=2026-01-01/log; echo one >&3; sleep 60 & kill -9 $!; wait; echo two >&3; exec 3>&-`)
	wantStore(t, l, "db/text/dt=2026-01-01/log", "one\ntwo\n")
	l.MustSh(`exec 3>db/text/dt=2026-01-01/torn; echo one >&3; sh -c 'echo half; kill -9 $$' >&3; echo two >&3; exec 3>&-`)
	wantAbsent(t, l, "db/text/dt=2026-01-01/torn")
	wantStaged(t, l, "db/text/dt=2026-01-01", "torn")
}
