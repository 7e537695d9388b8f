package fs_test

import (
	"testing"
)

// The redirect of an overwrite is by thread: those of one program do not get
// in one another's way, on several names or on one.
func TestThreadsOfOneProgramOverwriteAndRead(t *testing.T) {
	t.Parallel()
	files := map[string]string{"same": "x 0\n"}
	for _, n := range []string{"a", "b", "c", "d"} {
		files[n] = "x 0\n"
	}
	l := mountTwo(t, files)
	mustPython(t, l, script(l, csvDir, `
import threading
failures = []
def work(f, *args):
    def run():
        try: f(*args)
        except BaseException as e: failures.append("%s%r: %r" % (f.__name__, args, e))
    t = threading.Thread(target=run); t.start(); return t
def own(name):
    for i in range(60):
        fd = os.open(name, os.O_WRONLY | os.O_TRUNC); eq(os.fstat(fd).st_size, 0)
        data = b"%s %d\n" % (name.encode(), i)
        os.write(fd, data); os.close(fd)
        eq(("store", published(name)), ("store", data))
        eq(("mount", open(name, "rb").read()), ("mount", data))
def shared(who):
    for i in range(60):
        fd = os.open("same", os.O_WRONLY | os.O_TRUNC)
        os.write(fd, who.encode() * 5000)
        e = err(os.close, fd)
        assert e in (None, "ESTALE"), e
def reader():
    for i in range(150):
        for name in "a", "same":
            data = open(name, "rb").read()
            assert data and (name == "a" or len(set(data)) == 1 or data == b"x 0\n"), data[:80]
threads = [work(own, n) for n in "abcd"] + [work(shared, w) for w in "XYZ"] + [work(reader) for _ in range(2)]
for t in threads: t.join()
eq(failures, [])
`))
	for _, n := range []string{"a", "b", "c", "d"} {
		wantStore(t, l, csvDir+"/"+n, n+" 59\n")
	}
}

// A file may be written by one process after another: each opens what the last
// one has closed.
func TestRelayOfWriters(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	got := l.MustSh(`cd ` + csvDir + `; for i in $(seq 30); do
			echo $i >f; read x <f; test "$x" = $i || echo "read $x after writing $i"
			echo more >>f; test "$(wc -l <f)" = 2 || echo "appended $(cat f)"
			printf X | dd of=f conv=notrunc bs=1 count=1 status=none; read x <f; test "${x:0:1}" = X || echo "patched $x"
			cp f g; cmp f g; mv g f; rm -f f
		done; ls`)
	if got != "" {
		t.Errorf("output %q", got)
	}
	wantSettled(t, l)
}
