package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func TestBadValuesNameTheSettingAndMountNothing(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	for s := range settings.All() {
		if slices.Contains([]string{"state-dir", "cache-dir", "allow-location", "profile", "sse-kms-key-id", "ca-bundle", "database", "table", "temporary-names", "local-names", "backup-names"}, s.Name) {
			continue // any text is one
		}
		t.Run(s.Name, func(t *testing.T) {
			for _, bad := range []string{"!", "-1", "1e400"} {
				_, stderr, code := call(t, "lakefs-mount", nil, "mount", "--"+s.Name+"="+bad, lake.Source, lake.Root)
				if code != exitUsage || !strings.Contains(stderr, "--"+s.Name) || !strings.Contains(stderr, bad) {
					t.Errorf("--%s=%s: exit code %d, %q", s.Name, bad, code, stderr)
				}
				_, stderr, code = call(t, "lakefs-mount", []string{s.Env() + "=" + bad}, "mount", lake.Source, lake.Root)
				if code != exitUsage || !strings.Contains(stderr, s.Env()) || !strings.Contains(stderr, bad) {
					t.Errorf("%s=%s: exit code %d, %q", s.Env(), bad, code, stderr)
				}
			}
			if lake.Mounted() {
				t.Error("something is mounted")
			}
		})
	}
}

// TestValuesOutOfRange: just beyond what each kind of setting takes.
func TestValuesOutOfRange(t *testing.T) {
	t.Parallel()
	const tooLong, tooLarge = "106752d", "8388608T"
	bad := map[string][]string{
		"staged-keep": {tooLong, "65535d2562047h", "7", "1d-1h", "d"}, "metadata-ttl": {tooLong, "5"}, "negative-ttl": {tooLong, "1 s"},
		"io-timeout": {"0", "999ms", tooLong}, "temporary-linger": {tooLong, "10"}, "deregister-after": {tooLong, "-1ns"},
		"staged-max": {"0", "0.4", tooLarge, "10PB", "1_000"}, "memory-limit": {"0", "16777215", tooLarge}, "cache-size": {"0", "16777215", tooLarge},
		"manifest-max-bytes": {"0", tooLarge}, "manifest-max-columns": {"0", "2147483648", "1.5"}, "manifest-max-keys": {"0", "2147483648", "0x1"},
		"prefetch-files": {"2147483648", "1.5"}, "rename-limit": {"0", "2147483648"}, "part-size": {"5242879", "5368709121", "nan"},
		"uid": {"4294967295", "4294967296", "root"}, "gid": {"4294967295", "99999999999"},
		"file-mode": {"01000", "8", "u=rw"}, "dir-mode": {"1777", "0o700"}, "umask": {"1000", ""},
		"write": {"", "all", "None"}, "check-format": {"on"}, "on-killed": {"drop"}, "catalog-writes": {"all"}, "log-level": {"trace", "INFO"}, "log-format": {"logfmt"},
		"read-only": {"maybe", "2"}, "daemon": {"yes"},
		"metrics-addr": {"9105", ":65536", ":x", "host:", "unix:"}, "endpoint-url": {"ftp://h", "https://", "h:9000", "http://u:p@h/", "http://h/?q"}, "glue-endpoint-url": {"h"},
		"expected-bucket-owner": {"12345678901", "1234567890123", "abc"}, "sse": {"none", "AES"}, "checksum": {"md5"},
		"allow-location": {"", "relative/dir", "s3://", "file:rel"}, "config": {"", "/nonexistent/lake.yaml"}, "profile": {""}, "ca-bundle": {""}, "cache-dir": {""}, "sse-kms-key-id": {""}, "region": {"", "eu west"}, "storage-class": {""},
		"database": {""}, "table": {""},
	}
	for name, values := range bad {
		for _, v := range values {
			source := "s3://bucket/"
			if name == "glue-endpoint-url" {
				source = "glue:"
			}
			_, stderr, code := call(t, "lakefs-mount", nil, "mount", "--daemon", "--"+name+"="+v, source, "/nonexistent/dir/lake")
			if code != exitUsage || !strings.Contains(stderr, "--"+name) || strings.Count(stderr, "lakefs-mount: ") != 1 {
				t.Errorf("--%s=%q: exit code %d, %q", name, v, code, stderr)
			}
		}
	}
	free := []string{"state-dir", "temporary-names", "local-names", "backup-names"} // any text is one
	for s := range settings.All() {
		if s.Type != "" && bad[s.Name] == nil && !slices.Contains(free, s.Name) {
			t.Errorf("--%s is not in the table", s.Name)
		}
	}
}

// private is a private mount namespace with a /dev of its own, for scripts: it
// has no fuse device until make_fuse MODE.
const private = `exec unshare -m --propagation private bash -c '
mount -t tmpfs -o mode=755 none /dev || exit 90
for node in "null c 1 3" "zero c 1 5" "urandom c 1 9"; do mknod -m 666 /dev/$node || exit 91; done
make_fuse() { mknod -m $1 /dev/fuse c 10 229 || exit 92; }
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"; }
eval "$SCRIPT"'`

// isolated is a lake for private scripts, which have it in $SOURCE, $ROOT, $STATE
// and $MOUNT, the program; nobody owns it and may run that.
func isolated(t *testing.T) (run func(script string) mounttest.Result) {
	t.Helper()
	mounttest.FolderOnly(t, "it is given to another user")
	if os.Geteuid() != 0 {
		t.Skip("a mount namespace with devices needs root")
	}
	lake := mounttest.New(t, sales(t))
	program := filepath.Join(filepath.Dir(lake.Root), "lakefs-mount")
	setup := `chmod 755 ` + filepath.Dir(lake.Root) + ` ` + filepath.Dir(filepath.Dir(lake.Root)) + `
		cp ` + lake.Binary() + ` ` + program + `; chown -R 65534:65534 ` + lake.Source + ` ` + lake.Root + ` ` + lake.State
	if r := lake.Run("version"); r.Code != 0 {
		t.Fatal(r.Err)
	}
	if _, stderr, code := shell(t, setup); code != 0 {
		t.Fatal(stderr)
	}
	if _, stderr, code := shell(t, "unshare -m --propagation private mount -t tmpfs none /mnt"); code != 0 {
		t.Skipf("no private mount namespace here: %s", stderr)
	}
	return func(script string) mounttest.Result {
		t.Helper()
		return lake.Exec("env", "SOURCE="+lake.Source, "ROOT="+lake.Root, "STATE="+lake.State, "MOUNT="+program, "HOME=/nonexistent",
			"SCRIPT=cd /; "+script, "bash", "-c", private)
	}
}

func TestMountsThatCannotBeNameTheRemedy(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         []string
	}{
		{"no device", `$MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"/dev/fuse is not there", "modprobe fuse", "--device /dev/fuse"}},
		{"device closed", `make_fuse 600; as_nobody $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"/dev/fuse cannot be opened by this user", "chmod 666 /dev/fuse"}},
		{"no fusermount3", `make_fuse 666; as_nobody env PATH=/nonexistent $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"fusermount3 is not in PATH", "apt-get install fuse3"}},
		{"allow-other is not permitted", `make_fuse 666; mount --bind /dev/null /etc/fuse.conf; as_nobody $MOUNT mount $FLAGS --allow-other --state-dir=$STATE $SOURCE $ROOT`, []string{"--allow-other", "user_allow_other", "/etc/fuse.conf"}},
		{"source unreadable", `make_fuse 666; chown root $SOURCE; chmod 700 $SOURCE; as_nobody $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"source", "warehouse", "permission denied", "chmod"}},
		{"source unlistable", `make_fuse 666; chown root $SOURCE; chmod 711 $SOURCE; as_nobody $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"source", "warehouse", "permission denied", "chmod"}},
		{"mount point of another", `make_fuse 666; chown root $ROOT; chmod 755 $ROOT; as_nobody $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"mount point", "/lake", "chown"}},
		{"state of another", `make_fuse 666; chown -R root $STATE; as_nobody $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT`, []string{"staging", "may not write", "--state-dir"}},
		{"no /proc", `make_fuse 666; mount -t tmpfs none /proc; (as_nobody $MOUNT mount $FLAGS --state-dir=$STATE $SOURCE $ROOT); code=$?; umount /proc; (exit $code)`, []string{"/proc/self/mountinfo", "mount -t proc proc /proc"}},
		{"no home", `make_fuse 666; as_nobody env -u HOME XDG_STATE_HOME= $MOUNT mount $FLAGS $SOURCE $ROOT`, []string{"state", "--state-dir"}},
	} {
		for _, flags := range []string{"", "--daemon"} {
			t.Run(tt.name+flags, func(t *testing.T) {
				t.Parallel()
				run := isolated(t)
				r := run(`FLAGS=` + flags + `; ` + tt.script + `; code=$?
					grep "$ROOT" /proc/self/mountinfo; exit $code`)
				if r.Code != exitFailed || r.Out != "" {
					t.Errorf("exit code %d, want %d, mounted %q", r.Code, exitFailed, r.Out)
				}
				for _, want := range tt.want {
					if !strings.Contains(r.Err, want) {
						t.Errorf("the message is %q, which lacks %q", r.Err, want)
					}
				}
				if n := strings.Count(r.Err, "lakefs-mount: "); n != 1 {
					t.Errorf("%d error lines, want 1: %q", n, r.Err)
				}
			})
		}
	}
}

// TestOrdinaryUserMounts in a private mount namespace, where /dev/fuse is open
// to all: the device of this machine may not be.
func TestOrdinaryUserMounts(t *testing.T) {
	run := isolated(t)
	if _, _, code := shell(t, "command -v fusermount3"); code != 0 {
		t.Skip("no fusermount3 here (make deps installs it)")
	}
	r := run(`make_fuse 666; export MOUNT SOURCE ROOT STATE; as_nobody bash -c "$(cat <<'END'
cd /
fail() { echo "failed: $*"; cat $STATE/mount.log; exit 1; }
$MOUNT mount --daemon --state-dir=$STATE $SOURCE $ROOT || fail mount
grep " $ROOT fuse.lakefs-mount " /proc/self/mounts | grep nosuid | grep nodev | grep -q user_id=65534 || fail "mount table: $(grep $ROOT /proc/self/mounts)"
diff -r $ROOT/sales/notes $SOURCE/_data/sales/notes || fail diff
cd $ROOT/sales/notes/dt=2026-01-01
head -c 300000 /dev/urandom > $STATE/f; chmod 400 $STATE/f
cp $STATE/f f.csv && cmp $STATE/f f.csv && cmp $STATE/f $SOURCE/_data/sales/notes/dt=2026-01-01/f.csv || fail "cp of a file of mode 0400"
[ "$(stat -c %a:%u f.csv)" = 400:65534 ] || fail "mode $(stat -c %a:%u f.csv)"
rm -f f.csv && [ ! -e f.csv ] || fail "rm -f"
echo 2 > g.csv; echo 3 >> g.csv; mv g.csv h.csv; [ "$(cat h.csv | tr '\n' ' ')" = "2 3 " ] || fail append
bash -c 'exec 3>torn.csv; echo half >&3; kill -9 $$' 2>/dev/null
$MOUNT recover $ROOT | grep -q torn.csv || fail recover
cd /
$MOUNT status | grep -q running || fail status
kill -9 $(grep -o '"pid": [0-9]*' $ROOT/.lakefs/status.json | grep -o '[0-9]*')
until ! stat $ROOT/sales >/dev/null 2>&1; do sleep .02; done
$MOUNT mount --daemon --read-only --state-dir=$STATE $SOURCE $ROOT 2>$STATE/err || fail "mount again: $(cat $STATE/err)"
grep -q "detached the dead mount" $STATE/err || fail "dead mount: $(cat $STATE/err)"
grep " $ROOT fuse.lakefs-mount ro," /proc/self/mounts >/dev/null || fail read-only
$MOUNT recover $ROOT | grep -q torn.csv || fail "recover after a kill"
touch $ROOT/sales/notes/x 2>&1 | grep -q "Read-only" || fail "read-only touch"
$MOUNT unmount $ROOT || fail unmount
! grep -q $ROOT /proc/self/mountinfo || fail "still mounted"
[ -z "$(ls -A $ROOT)" ] || fail "left behind: $(ls -A $ROOT)"
$MOUNT mount --state-dir=$STATE $SOURCE $ROOT 2>$STATE/err & pid=$!
until grep -q "^mounted" $STATE/err; do sleep .02; done
kill -TERM $pid; wait $pid || fail "SIGTERM: $(cat $STATE/err)"
! grep -q $ROOT /proc/self/mountinfo || fail "mounted after SIGTERM"
END
)"`)
	if r.Code != 0 {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
}

// TestDaemonInACommandSubstitution ends when the mount is ready: nothing of the
// daemon holds the descriptors of its caller.
func TestDaemonInACommandSubstitution(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	out, stderr, code := shell(t, `said=$(timeout 20 `+lake.Binary()+` mount --daemon --state-dir=`+lake.State+` `+lake.Source+` `+lake.Root+` 2>&1) || exit 1
		echo "$said"; cat `+lake.Root+`/sales/notes/dt=2026-01-01/a.csv; `+lake.Binary()+` unmount `+lake.Root)
	if code != 0 || !strings.Contains(out, "mounted") || !strings.HasSuffix(out, "1,one\n") || lake.Mounted() {
		t.Errorf("exit code %d, %q %q, mounted %v", code, out, stderr, lake.Mounted())
	}
}
