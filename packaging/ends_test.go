package packaging_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

// end is a way in which a mount ends, or is bothered.
type end struct {
	name   string
	script string // run in the machine; empty: the power is cut
	stays  bool   // the mount goes on: it is the same process
}

// In each, $PID is the mount's process, $UNIT the service and $AT the mount point.
var ends = []end{
	{name: "SIGTERM", script: "kill -TERM $PID"},
	{name: "SIGINT", script: "kill -INT $PID"},
	{name: "SIGTERM twice", script: "kill -TERM $PID; sleep 1.2; kill -TERM $PID 2>/dev/null || true"},
	{name: "SIGHUP", script: "kill -HUP $PID", stays: true},
	{name: "SIGUSR1", script: "kill -USR1 $PID", stays: true},
	{name: "reload", script: "systemctl reload $UNIT", stays: true},
	{name: "SIGKILL", script: "kill -KILL $PID"},
	{name: "SIGABRT", script: "kill -ABRT $PID"},
	{name: "umount -l", script: "umount -l $AT; systemctl stop 'o*.service' 'w*.service'"}, // it ends with the last open file
	{name: "umount -l, restart", script: "umount -l $AT; systemctl restart $UNIT"},
	{name: "umount -f", script: "umount -f $AT || umount -l $AT"},
	{name: "stop", script: "systemctl stop $UNIT"},
	{name: "restart", script: "systemctl restart $UNIT"},
	{name: "SIGKILL of all", script: "systemctl kill --signal=KILL $UNIT 'w*.service' 'o*.service'"},
	{name: "power cut"},
}

// writers write files of one lake while it ends.
type writers struct {
	m    *machine
	t    *testing.T
	name string // of the service
	run  string // of the end
	at   string // the directory that they write to
}

// writerScript writes a file after another, and notes each that it was told is written.
// A file of 6 MiB is a PUT of the store, and takes its time.
const writerScript = `: writer-of-%[1]s
set +e
i=0
while [ $i -lt 400 ] && [ ! -e /srv/%[2]s.stop ]; do
	i=$((i+1))
	head -c $((i * 7001 + (i %% 5 / 4) * 6000000)) /dev/urandom | base64 -w 60 >/srv/%[2]s.new
	sum=$(sha256sum </srv/%[2]s.new)
	cp /srv/%[2]s.new '%[3]s/%[2]s-'$i.csv 2>/dev/null && echo "$sum $i" >>/srv/%[2]s.told
	[ -d '%[3]s' ] || sleep 0.1
done`

// survive starts the writers, ends the mount, has it come back, and looks.
func (w *writers) survive(e end) {
	m := w.m
	defer m.in(w.t)()
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(w.name+w.run)))[:8]
	unit := "lakefs-mount@" + w.name
	defer func() { _, _ = m.try(fmt.Sprintf("systemctl stop w%s o%[1]s", id)) }() // of a test that failed
	m.run("systemctl start " + unit)
	pid := strings.TrimSpace(m.run("systemctl show -P MainPID " + unit))
	m.run(fmt.Sprintf("cat >/srv/%s.sh <<'END'\n%s\nEND\nsystemd-run --quiet --unit=w%[1]s sh /srv/%[1]s.sh\n", id, fmt.Sprintf(writerScript, "/mnt/"+w.name, id, w.at)))
	// Another has a file open, and has written to it.
	m.run(fmt.Sprintf(`cat >/srv/%s.open.sh <<'END'
: writer-of-/mnt/%s
exec 3>'%[3]s/open-%[1]s.csv'
printf 'id\none\n' >&3
touch /srv/%[1]s.open
exec sleep 300
END
systemd-run --quiet --unit=o%[1]s sh /srv/%[1]s.open.sh`, id, w.name, w.at))
	waitFor(w.t, time.Minute, "the writers", func() bool {
		_, err := m.try(fmt.Sprintf("test -e /srv/%s.open && test $(wc -l </srv/%[1]s.told) -ge 5", id))
		return err == nil
	})
	if e.script == "" {
		m.cut()
		m.start()
	} else {
		m.run(fmt.Sprintf("PID=%s UNIT=%s AT=/mnt/%s\n%s", pid, unit, w.name, e.script))
	}
	if !e.stays && e.script != "" {
		waitFor(w.t, time.Minute, "the mount's end", func() bool {
			_, err := m.try("kill -0 " + pid)
			return err != nil
		})
	}
	m.run("systemctl start " + unit)
	w.look(e, id, unit, pid)
}

// look compares what is there with what the writers were told.
func (w *writers) look(e end, id, unit, pid string) {
	m := w.m
	now := strings.TrimSpace(m.run("systemctl show -P MainPID " + unit))
	if (now == pid) != e.stays && e.script != "" {
		w.t.Errorf("the process was %s and is %s", pid, now)
	}
	m.run(fmt.Sprintf("touch /srv/%s.stop; systemctl stop w%[1]s o%[1]s 2>/dev/null || true", id))
	// What was being written is staged: published now, with all bytes that write took.
	for _, flag := range []string{"", "--publish=all "} {
		out, err := m.try("lakefs-mount recover " + flag + "/mnt/" + w.name)
		w.t.Logf("recover %s(%v):\n%s", flag, err, out)
	}
	if got := m.run(fmt.Sprintf("cat '%s/open-%s.csv'", w.at, id)); got != "id\none\n" {
		w.t.Errorf("the file that was open: %q", got)
	}
	out := m.run(fmt.Sprintf(`cd '%s'
wrong=0; told=0
while read -r sum dash i; do
	told=$((told+1))
	[ "$(sha256sum <%s-$i.csv)" = "$sum  -" ] || { echo "wrong: $i"; wrong=$((wrong+1)); }
done </srv/%[2]s.told
echo "$told told, $wrong wrong"`, w.at, id))
	w.t.Log(strings.TrimSpace(out))
	if !strings.Contains(out, " 0 wrong") || strings.HasPrefix(out, "0 told") {
		w.t.Error(out)
	}
	m.run(fmt.Sprintf("rm -f /srv/%s.*", id))
}
