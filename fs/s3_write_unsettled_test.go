package fs_test

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Publishes and renames of which nobody can tell for a while whether they took
// effect: the answer is lost, and the store then refuses to be looked at.

// blindFrom makes the store one that cannot be looked at from the first request
// on that meets it, whose answer is lost.
func blindFrom(l *mounttest.Lake) faulty.Func {
	return func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		l.Proxy.Add(onFile(l, "HeadObject", "", answers(503, "SlowDown")))
		return faulty.LoseAnswer{}.Apply(x, next)
	}
}

// refuseFrom is blindFrom, but nothing takes effect.
func refuseFrom(l *mounttest.Lake) faulty.Func {
	return func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		l.Proxy.Add(onFile(l, "HeadObject", "", answers(503, "SlowDown")))
		return answers(503, "SlowDown").Apply(x, next)
	}
}

// TestCase21UnsettledPublishOnS3: the close fails, and what had taken effect is
// recognised later, by the next mount or by recover.
func TestCase21UnsettledPublishOnS3(t *testing.T) {
	t.Parallel()
	for _, later := range []string{"remount", "recover"} {
		for name, flags := range map[string]int{"new": creat, "old": trunc} {
			t.Run(later+" "+name, func(t *testing.T) {
				t.Parallel()
				l := faultyTwo(t, map[string]string{"old": "old\n"}, "--io-timeout=1s")
				warm(t, l)
				l.Proxy.Add(onFile(l, "PutObject", name, blindFrom(l)))
				wantErrno(t, "close", writeErr(l, csvDir+"/"+name, flags, "mine\n", nil), syscall.EIO)
				l.Proxy.Clear()
				puts := putsOf(l, name)
				if later == "remount" {
					l.Remount("--write=delete")
				} else if r := l.Run("recover", "--publish=all", l.Root); r.Code != 0 {
					t.Errorf("recover: exit code %d, %s%s", r.Code, r.Out, r.Err)
				}
				l.Eventually("settled", 0, func() bool { return len(spools(t, l)) == 0 })
				wantStore(t, l, csvDir+"/"+name, "mine\n")
				wantContent(t, l, csvDir+"/"+name, "mine\n")
				if again := putsOf(l, name) - puts; again > 0 {
					t.Errorf("it was published %d times more\n%s", again, asked(l))
				}
				names := []string{"old"}
				if name == "new" {
					names = append(names, name)
				}
				wantClean(t, l, csvDir, names...)
				wantBucket(t, l, names...)
			})
		}
	}
}

// TestCase21UnsettledPublishIsNotRedoneOnS3: a close failed, nothing had taken
// effect, and the name was used for other things, or not at all. The next mount
// publishes nothing by itself; the bytes are there for recover.
func TestCase21UnsettledPublishIsNotRedoneOnS3(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"new": "", "rewritten": "again\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, map[string]string{"old": "old\n"}, "--io-timeout=1s")
			warm(t, l)
			l.Proxy.Add(onFile(l, "PutObject", name, refuseFrom(l)))
			wantErrno(t, "close", writeErr(l, csvDir+"/"+name, creat, "mine\n", nil), syscall.EIO)
			l.Proxy.Clear()
			names := []string{"old"}
			if want != "" {
				names = append(names, name)
				write(t, l, csvDir+"/"+name, want)
			}
			l.Proxy.Reset()
			l.Remount("--write=delete")
			if l.Proxy.Count("HeadObject") == 0 {
				t.Errorf("nobody looked at what came of it\n%s", asked(l))
			}
			wantNames(t, l, csvDir, names...)
			wantBucket(t, l, names...)
			if want != "" {
				wantStore(t, l, csvDir+"/"+name, want)
			}
			wantContent(t, l, wantStaged(t, l, csvDir, name), "mine\n")
			if again := putsOf(l, name); again > 0 {
				t.Errorf("it was published %d times more\n%s", again, asked(l))
			}
		})
	}
}

// TestCase21UnsettledRenameOnS3: likewise; one name is left.
func TestCase21UnsettledRenameOnS3(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"CopyObject", "DeleteObject"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, map[string]string{"from": "from\n"}, "--io-timeout=1s")
			l.MustSh(`ls -l ` + csvDir)
			l.Proxy.Add(onFile(l, op, "", blindFrom(l)))
			wantErrno(t, "rename", rename(l, csvDir+"/from", csvDir+"/to"), syscall.EIO)
			l.Proxy.Clear()
			l.Signal(syscall.SIGTERM)
			if code := l.Wait(); code != 1 { // the rename is half done, and named
				t.Errorf("the mount ended with %d:\n%s", code, l.Log())
			}
			l.Start("--write=delete")
			l.Eventually("settled", 0, func() bool { return len(spools(t, l)) == 0 })
			wantStore(t, l, csvDir+"/to", "from\n")
			wantNames(t, l, csvDir, "to")
			wantBucket(t, l, "to")
		})
	}
}
