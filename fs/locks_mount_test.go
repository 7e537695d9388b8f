package fs_test

import (
	"testing"
)

// lockScript has a second process that takes locks on command: ask(p, "…")
// evaluates an expression there, with the file name opened as fd.
const lockScript = `
import fcntl, signal, struct, time
def process(name, flags):
    return subprocess.Popen([sys.executable, "-c", """
import errno, fcntl, os, sys
fd = os.open(sys.argv[1], int(sys.argv[2]), 0o644)
for line in sys.stdin:
    try: print(eval(line), flush=True)
    except OSError as e: print(errno.errorcode[e.errno], flush=True)
""", name, str(flags)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(p, expression):
    print(expression, file=p.stdin, flush=True)
    return p.stdout.readline().strip()
def end(p):
    p.stdin.close(); p.wait()
def until(what, want):
    deadline = time.monotonic() + 20
    while (got := what()) != want:
        assert time.monotonic() < deadline, "got %r, want %r" % (got, want)
        time.sleep(.005)
FLOCK, POSIX = "fcntl.flock(fd, fcntl.LOCK_EX|fcntl.LOCK_NB)", "fcntl.lockf(fd, fcntl.LOCK_EX|fcntl.LOCK_NB)"
SHFLOCK, SHPOSIX = "fcntl.flock(fd, fcntl.LOCK_SH|fcntl.LOCK_NB)", "fcntl.lockf(fd, fcntl.LOCK_SH|fcntl.LOCK_NB)"
R, W, C = os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT
`

func runLocks(t *testing.T, body string) {
	t.Helper()
	l := mountTwo(t, map[string]string{"old": "old\n"})
	mustPython(t, l, script(l, csvDir, lockScript+body))
	// What a killed process only opened leaves nothing behind.
	wantSettled(t, l)
}

// Two writers of a published name have a node each, and still exclude one another.
func TestLocksAreByNameNotByNode(t *testing.T) {
	t.Parallel()
	runLocks(t, `
for lock in FLOCK, POSIX:
    for name, first, second in ("old", W, W), ("new", C, C), ("old", W | os.O_TRUNC, W | os.O_APPEND):
        a = process(name, first); eq(ask(a, lock), "None")
        b = process(name, second); eq(ask(b, lock), "EAGAIN")
        eq(ask(a, "os.close(fd)"), "None")
        until(lambda: ask(b, lock), "None")
        end(a); end(b)
    for shared in SHFLOCK, SHPOSIX:
        a, b, c = process("old", R), process("old", R), process("old", W)
        eq(ask(a, shared), "None"); eq(ask(b, shared), "None")
        exclusive = FLOCK if shared == SHFLOCK else POSIX
        eq(ask(c, exclusive), "EAGAIN")
        end(a); eq(ask(c, exclusive), "EAGAIN")
        end(b); until(lambda: ask(c, exclusive), "None")
        end(c)
a, b = process("old", W), process("old", W)
eq(ask(a, FLOCK), "None"); eq(ask(b, POSIX), "None")
end(a); end(b)
`)
}

func TestLocksEndAtCloseUnlockAndKill(t *testing.T) {
	t.Parallel()
	runLocks(t, `
for lock, unlock in (FLOCK, "fcntl.flock(fd, fcntl.LOCK_UN)"), (POSIX, "fcntl.lockf(fd, fcntl.LOCK_UN)"):
    for finish in "unlock", "close", "exit", "kill":
        a, b = process("old", W), process("old", W)
        eq(ask(a, lock), "None"); eq(ask(b, lock), "EAGAIN")
        if finish == "unlock": eq(ask(a, unlock), "None"); eq(ask(b, lock), "None")
        if finish == "close": eq(ask(a, "os.close(fd)"), "None")
        if finish == "exit": end(a)
        if finish == "kill": a.kill(); a.wait()
        until(lambda: ask(b, lock), "None")
        a.kill(); a.wait(); end(b)
`)
}

// POSIX locks end when the process closes any descriptor of the file; a flock
// lives until the last duplicate is closed.
func TestWhichCloseEndsALock(t *testing.T) {
	t.Parallel()
	runLocks(t, `
a, b = process("old", R), process("old", W)
eq(ask(a, SHPOSIX), "None"); eq(ask(b, POSIX), "EAGAIN")
eq(ask(a, "os.close(os.open('old', os.O_RDONLY))"), "None")
eq(ask(b, POSIX), "None")
end(a); end(b)
a, b = process("old", W), process("old", W)
eq(ask(a, FLOCK), "None")
d = int(ask(a, "os.dup(fd)"))
eq(ask(a, "os.close(fd)"), "None")
eq(ask(b, FLOCK), "EAGAIN")
eq(ask(a, "os.close(%d)" % d), "None")
until(lambda: ask(b, FLOCK), "None")
end(a); end(b)
`)
}

func TestPosixLocksOfRanges(t *testing.T) {
	t.Parallel()
	runLocks(t, `
def lock(how, start, length): return "fcntl.lockf(fd, fcntl.%s, %d, %d)" % (how + "|fcntl.LOCK_NB" * (how != "LOCK_UN"), length, start)
a, b = process("old", W), process("old", W)
eq(ask(a, lock("LOCK_EX", 0, 100)), "None")
eq(ask(b, lock("LOCK_EX", 100, 10)), "None")
eq(ask(b, lock("LOCK_EX", 99, 1)), "EAGAIN")
eq(ask(a, lock("LOCK_UN", 40, 20)), "None")
eq(ask(b, lock("LOCK_EX", 40, 20)), "None")
eq(ask(b, lock("LOCK_SH", 39, 1)), "EAGAIN")
eq(ask(b, lock("LOCK_SH", 60, 1)), "EAGAIN")
eq(ask(a, lock("LOCK_SH", 0, 40)), "None")
eq(ask(b, lock("LOCK_SH", 39, 1)), "None")
eq(ask(b, lock("LOCK_EX", 10, 1)), "EAGAIN")
fd = os.open("old", os.O_RDWR)
want = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 45, 1, 0)
typ, _, start, length, pid = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, want))
eq((typ, start, length, pid), (fcntl.F_WRLCK, 40, 20, b.pid))
os.close(fd); end(a); end(b)
`)
}

func TestWaitingForALock(t *testing.T) {
	t.Parallel()
	runLocks(t, `
class Alarm(Exception): pass
def alarm(*a): raise Alarm
signal.signal(signal.SIGALRM, alarm)
for lock, wait in (POSIX, lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX)), (FLOCK, lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)):
    a = process("old", W); eq(ask(a, lock), "None")
    fd = os.open("old", os.O_RDWR)
    signal.setitimer(signal.ITIMER_REAL, .2)
    try:
        wait(fd)
        raise AssertionError("two processes hold the lock")
    except Alarm: pass
    # A killed waiter leaves nothing that waits.
    w = process("old", W)
    print(lock.replace("|fcntl.LOCK_NB", ""), file=w.stdin, flush=True)
    time.sleep(.2); w.kill(); w.wait()
    # And one that waits long enough gets it.
    w = process("old", W)
    print(lock.replace("|fcntl.LOCK_NB", ""), file=w.stdin, flush=True)
    time.sleep(.1)
    end(a)
    eq(w.stdout.readline().strip(), "None")
    end(w)
    wait(fd)
    os.close(fd)
`)
}

// What cron scripts do: flock of a lock file by the shell's own descriptor.
func TestFlockOfTheShell(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	got := l.MustSh(`cd ` + csvDir + `; exec 9>lock; flock -n 9 && echo mine
		(exec 8>lock; flock -n 8 || echo taken)
		for i in 1 2 3 4 5 6; do (exec 9>&- 7>>lock; flock 7; n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n) & done
		exec 9>&-; wait; cat n`)
	if got != "mine\ntaken\n6\n" {
		t.Errorf("output %q", got)
	}
}

// The lock outlasts the publishes of its holder.
func TestLockOutlastsAPublish(t *testing.T) {
	t.Parallel()
	runLocks(t, `
for lock in FLOCK, POSIX:
    for name, flags in ("old", W), ("new" + lock[6:8], C):
        a = process(name, flags); eq(ask(a, lock), "None")
        eq(ask(a, "os.write(fd, b'xyz')"), "3"); eq(ask(a, "os.fsync(fd)"), "None")
        eq(published(name)[:3], b"xyz")
        b = process(name, W); eq(ask(b, lock), "EAGAIN")
        eq(ask(a, "os.write(fd, b'more')"), "4")
        eq(ask(b, lock), "EAGAIN")
        end(a); until(lambda: ask(b, lock), "None"); end(b)
        eq(published(name)[:7], b"xyzmore")
`)
}
