package packaging_test

import (
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestInAFreshDebian installs the deb in a Debian that has nothing else, follows
// docs/operations.md to a mounted lake under systemd, ends the mount in every way under
// writers, and finds what they were told is written.
func TestInAFreshDebian(t *testing.T) {
	long(t)
	if os.Geteuid() != 0 {
		t.Skip("only root makes a machine")
	}
	server := s3test.Fresh(t)
	m := boot(t, freshRoot(t))
	m.copyIn(built(t, "_amd64.deb"))
	began := time.Now()

	bucket := server.Bucket(t)
	m.quickStart("s3://"+bucket+"/wh/", func() { m.makeLakes(server, bucket) })
	m.run("cd /etc/lakefs-mount; printf 'SOURCE=/srv/demo/warehouse\\nMOUNTPOINT=/mnt/folder\\n' >folder.env; cp /usr/share/doc/lakefs-mount/examples/lake.yaml folder.yaml")
	m.run("systemctl enable --now lakefs-mount@folder")
	t.Logf("installed and mounted after %v; the service: %s", time.Since(began).Round(time.Millisecond), m.run("systemd-analyze security --no-pager lakefs-mount@lake | tail -1"))
	for _, name := range []string{"lake", "folder"} {
		for _, end := range ends {
			t.Run(name+"/"+end.name, func(t *testing.T) {
				w := &writers{m: m, t: t, name: name, run: end.name, at: "/mnt/" + name + "/web/clicks/dt=2026-01-01"}
				w.survive(end)
			})
		}
	}
	t.Run("stop publishes", func(t *testing.T) {
		defer m.in(t)()
		m.run("printf 'last\\n' >/mnt/lake/web/clicks/dt=2026-01-01/last.csv; systemctl stop lakefs-mount@lake lakefs-mount@folder")
		if got := string(server.Get(t, bucket, "wh/"+m.clicks(server, bucket)+"/last.csv")); got != "last\n" {
			t.Errorf("in the store: %q", got)
		}
		if out := m.run("findmnt --noheadings --types fuse.lakefs-mount || true"); out != "" {
			t.Errorf("still mounted: %s", out)
		}
	})
	t.Run("mount(8)", func(t *testing.T) {
		defer m.in(t)()
		m.fstab()
	})
	t.Run("a user's own", func(t *testing.T) {
		defer m.in(t)()
		out := m.run("useradd --create-home alice; su - alice -c 'lakefs-mount demo ~/demo >/dev/null; ls ~/demo/lake; lakefs-mount unmount ~/demo/lake'")
		if !strings.Contains(out, "web.json") {
			t.Error(out)
		}
	})
	t.Run("manual pages and completions", func(t *testing.T) {
		defer m.in(t)()
		m.run("cd /usr/share; test -s man/man1/lakefs-mount-mount.1.gz; test -s man/man5/lakefs-mount.yaml.5.gz; test -s man/man8/mount.fuse.lakefs-mount.8.gz; bash -n bash-completion/completions/lakefs-mount")
	})
	t.Run("removal keeps", func(t *testing.T) {
		defer m.in(t)()
		m.run("apt-get purge -y lakefs-mount; test -d /var/lib/lakefs-mount/lake; test -e /etc/lakefs-mount/lake.env; test ! -e /usr/bin/lakefs-mount; test ! -e /usr/sbin/mount.lakefs-mount")
	})
}

func (m *machine) copyIn(file string) {
	m.t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(m.root, "root", filepath.Base(file)), content, 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// quickStart follows the block of docs/operations.md line by line, with a SOURCE of its
// own; installed is called once the program is there.
func (m *machine) quickStart(source string, installed func()) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(mounttest.ModuleRoot(m.t), "docs/operations.md"))
	if err != nil {
		m.t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- packaging/fresh_test.go.*?-->\n```sh\n(.*?)```").FindSubmatch(text)
	if block == nil {
		m.t.Fatal("docs/operations.md has no quick start")
	}
	if !strings.Contains(string(block[1]), "s3://lake/wh/") {
		m.t.Fatalf("the quick start has another SOURCE:\n%s", block[1])
	}
	for line := range strings.Lines(string(block[1])) {
		if strings.HasPrefix(line, "lakefs-mount check") {
			installed()
		}
		out := m.run("cd /root\n" + strings.ReplaceAll(line, "s3://lake/wh/", source))
		m.t.Logf("# %s%.1500s", line, out)
	}
	// The unit lets through what the mount does beside serving files.
	if out := m.run("lakefs-mount rows --limit=1 --format=jsonl /mnt/lake/sales/orders/dt=2026-01-01/region=eu/part-0000.parquet"); !strings.HasPrefix(out, "{") {
		m.t.Errorf("rows: %s", out)
	}
	m.run("test \"$(ls /mnt/lake | wc -l)\" -ge 3; test \"$(systemctl show -P SubState lakefs-mount@lake)\" = running")
}

// makeLakes makes the demo's warehouse, copies it into the bucket, and writes the
// credentials and the settings of the store.
func (m *machine) makeLakes(server *s3test.Server, bucket string) {
	m.t.Helper()
	m.run("HOME=/root lakefs-mount demo /srv/demo; lakefs-mount unmount /srv/demo/lake; rm -r /srv/demo/warehouse/broken")
	warehouse := filepath.Join(m.root, "srv/demo/warehouse")
	err := filepath.WalkDir(warehouse, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			key, _ := filepath.Rel(warehouse, path)
			server.Put(m.t, bucket, "wh/"+key, content)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.run(fmt.Sprintf(`cd /etc/lakefs-mount
mkdir -m 700 aws
printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' >aws/credentials
sed -i 's,^#\(AWS_SHARED_CREDENTIALS_FILE\),\1,' lake.env
printf 'endpoint-url: %s\nregion: %s\n' >>lake.yaml
mkdir -p /root/.aws; cp aws/credentials /root/.aws/`, server.Access, server.Secret, server.Endpoint, server.Region))
}

// clicks is the key of the partition that is written to, below the lake's root.
func (m *machine) clicks(server *s3test.Server, bucket string) string {
	m.t.Helper()
	for _, key := range server.Keys(m.t, bucket, "wh/") {
		if strings.HasSuffix(key, "dt=2026-01-01/clicks.csv") {
			return strings.TrimPrefix(filepath.Dir(key), "wh/")
		}
	}
	m.t.Fatal("the bucket has no clicks.csv")
	return ""
}

// fstab mounts by mount(8), under both of its types, and by units of systemd.
func (m *machine) fstab() {
	m.t.Helper()
	m.run("systemctl stop 'lakefs-mount@*'")
	for _, kind := range []string{"lakefs-mount", "fuse.lakefs-mount"} {
		out := m.run(fmt.Sprintf(`echo '/srv/demo/warehouse /mnt/folder %s config=/etc/lakefs-mount/folder.yaml,state-dir=/var/lib/lakefs-mount/folder,ro,_netdev 0 0' >/etc/fstab
mount /mnt/folder
ls /mnt/folder
umount /mnt/folder`, kind))
		if !strings.Contains(out, "web.json") {
			m.t.Errorf("%s: %s", kind, out)
		}
	}
	out := m.run(`cd /usr/share/doc/lakefs-mount/examples
for u in mnt-lake.mount mnt-lake.automount; do sed 's,s3://lake/wh/,/srv/demo/warehouse,; s,config=/etc/lakefs-mount/lake.yaml,config=/etc/lakefs-mount/folder.yaml,' $u >/etc/systemd/system/$u; done
systemd-analyze verify --man=no /etc/systemd/system/mnt-lake.mount /etc/systemd/system/mnt-lake.automount lakefs-mount@lake.service
systemctl daemon-reload
systemctl start mnt-lake.mount
ls /mnt/lake
systemctl stop mnt-lake.mount`) // not the automount: this may be a kernel without autofs
	if !strings.Contains(out, "web.json") {
		m.t.Error(out)
	}
}
