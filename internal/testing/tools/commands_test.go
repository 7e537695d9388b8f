package tools_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// A trial is a block of commands of a document, and what makes it run here: the
// document, its first words, and scripts that run before and after it in the same
// shell. What the block mounts is mounted in the background, listed, and unmounted again;
// "s3" or "glue" is mounted at ~/lake before. A block that cannot run, or shows no
// command, has the reason.
type trial struct {
	document, first string

	at            string
	before, after string
	reason        string
}

const (
	isFstab   = "lines of /etc/fstab: mount(8) with root and a service; packaging/fresh_test.go mounts by them"
	isPolicy  = "a statement of a policy, no command"
	isScreen  = "a screen that cmd/lakefs-mount has its own test of"
	isPicture = "a picture; TestThePictureOfTheTree compares it"
)

func trials() []trial {
	return []trial{
		{document: "README.md", first: "lakefs-mount mount glue: ~/lake"},
		{
			document: "README.md", first: "make demo", before: "cd $repository; make() { command make DEMO=$dir/demo BIN=$dir/bin/lakefs-mount \"$@\"; }",
			after: "ls $dir/demo/lake/sales/orders; $dir/bin/lakefs-mount unmount $dir/demo/lake",
		},
		{document: "README.md", first: "demo/lake", reason: isPicture},
		{document: "README.md", first: "make test", reason: "it runs this test"},
		{document: "README.md", first: "bin/lakefs-mount check glue:"},
		{document: "README.md", first: "bin/lakefs-mount mount /srv/warehouse /mnt/lake"},
		{document: "README.md", first: "bin/lakefs-mount check s3://lake/wh/"},
		{document: "README.md", first: "/srv/warehouse  /mnt/lake", reason: isFstab},

		{document: "docs/operations.md", first: "apt-get install", reason: "it needs root and systemd; packaging/fresh_test.go runs it in a fresh Debian"},
		{document: "docs/operations.md", first: "s3://lake/wh/  /mnt/lake", reason: isFstab},
		{document: "docs/operations.md", first: "lakefs-mount mount glue: ~/lake"},
		{document: "docs/operations.md", first: `{"Effect"`, reason: isPolicy},
		{document: "docs/operations.md", first: "lakefs-mount mount --temporary-names="},
		{document: "docs/operations.md", first: "lakefs-mount mount --cache-dir="},
		{document: "docs/operations.md", first: "lakefs-mount warm ", at: "s3"},
		{document: "docs/operations.md", first: "# /etc/lakefs-mount/lake.yaml", reason: "a settings file, no command; internal/settings reads such files in its tests"},
		{document: "docs/operations.md", first: "lakefs-mount config > lake.yaml", after: "[ -s lake.yaml ]; lakefs-mount mount --config=lake.yaml /srv/warehouse ~/lake"},
		{document: "docs/operations.md", first: "jq .settings.write ~/lake", at: "s3"},
		{document: "docs/operations.md", first: "lakefs-mount man --dir", after: "[ -s ~/.local/share/man/man1/lakefs-mount.1 ]; complete -p lakefs-mount"},
		{document: "docs/operations.md", first: "$ lakefs-mount status", reason: isScreen},
		{document: "docs/operations.md", first: "$ lakefs-mount top", reason: isScreen},
		{document: "docs/operations.md", first: `mount("lake", `, reason: "the calls of a program that mounts for others; cmd/lakefs-mount has tests of its own"},
		{document: "docs/operations.md", first: "lakefs-mount top --json", before: mountThere + "lakefs-mount() { timeout 3 $program \"$@\" --interval=1s || [ $? = 124 ]; }", after: "jq . lake.jsonl; leave /mnt/lake"},
		{document: "docs/operations.md", first: "dd if=NAME.partial", before: "head -c 9 /dev/zero >COPY; echo 12345678 >NAME.partial; FROM=2 TO=4", after: `[ "$(tr -d '\0' <COPY)" = 345 ]`},
		{document: "docs/operations.md", first: "lakefs-mount repair --dry-run", at: "glue"},
		{document: "docs/operations.md", first: "cd ~/lake/sales/orders", at: "glue", after: "ls ~/lake/sales/orders/dt=2026-11-30; cd"},
		{document: "docs/operations.md", first: "lakefs-mount set-format", at: "glue", before: "mkdir -p ~/lake/sales/orders/dt=2026-11-30; cp $parquet ~/lake/sales/orders/dt=2026-11-30"},
		{
			document: "docs/operations.md", first: "lakefs-mount mount --metrics-addr=:9105", before: "lakefs-mount() { mounted --pprof --state-dir=STATE_DIR \"${@:2}\"; }",
			after: "[ -s heap.pb.gz ]; leave ~/lake",
		},
		{document: "docs/operations.md", first: "# prometheus.yml", reason: "settings of Prometheus, no command"},
	}
}

const mountThere = "mounted s3://lake/wh/ /mnt/lake\n"

// A block of a document that is not an example of TestExamplesOf.
type block struct {
	line int
	text string
}

// blocks reads the blocks of a text that are indented, or between fences, but those
// that runExamples runs.
func blocks(text string) []block {
	var all []block
	fence, open := "", false
	for i, line := range strings.Split(text, "\n") {
		indented := fence == "" && strings.HasPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "```") && fence == "":
			fence, open = line, false
			continue
		case strings.HasPrefix(line, "```"):
			fence, open = "", false
			continue
		case fence == "```console", fence == "" && !indented:
			open = false
			continue
		case !open:
			all, open = append(all, block{line: i + 1}), true
		}
		if indented {
			line = line[4:]
		}
		all[len(all)-1].text += line + "\n"
	}
	return all
}

// TestCommandsOfTheDocuments runs the blocks of commands that are no examples with
// their output, in a home of their own, with buckets and a catalog for those of AWS.
func TestCommandsOfTheDocuments(t *testing.T) {
	if os.Getenv("MOUNTTEST_STORE") != "" {
		t.Skip("the blocks name their stores; the run on a folder runs them")
	}
	m := newMachine(t)
	used := map[string]bool{}
	all := trials()
	for _, document := range []string{"README.md", "docs/operations.md", "docs/security.md", "docs/semantics.md", "docs/looking-inside.md"} {
		raw, err := os.ReadFile(filepath.Join(mounttest.ModuleRoot(t), document))
		must(t, err)
		if strings.Contains(string(raw), "\n```console\n") && !slices.Contains(documents(), filepath.Base(document)) {
			t.Errorf("%s has examples with their output, which TestExamplesOf does not run", document)
		}
		for _, b := range blocks(string(raw)) {
			i := slices.IndexFunc(all, func(x trial) bool { return x.document == document && strings.HasPrefix(b.text, x.first) })
			if i < 0 {
				t.Errorf("%s:%d: nothing runs this block, and no reason is given:\n%s", document, b.line, b.text)
				continue
			}
			used[document+all[i].first] = true
			if all[i].reason == "" {
				t.Run(fmt.Sprintf("%s line %d", filepath.Base(document), b.line), func(t *testing.T) { m.run(t, all[i], b) })
			}
		}
	}
	for _, x := range all {
		if !used[x.document+x.first] {
			t.Errorf("%s has no block that begins with %q", x.document, x.first)
		}
	}
}

// machine is where the blocks run.
type machine struct {
	lake     *mounttest.Lake // whose buckets and catalog are used; it is not mounted itself
	dir      string
	prologue string
	places   *strings.Replacer
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	source := demo(t)
	must(t, os.RemoveAll(filepath.Join(source, "broken"))) // of which check would speak
	lake := mounttest.New(t, mounttest.Options{Timeout: 3 * time.Minute, Source: source, Glue: &mounttest.Glue{Tables: []mounttest.GlueTable{{
		Table: mounttest.Table{Database: "sales", Name: "orders", Format: "parquet", Keys: []string{"dt:date"}},
		Partitions: []mounttest.GluePartition{{
			Values: []string{"2026-01-01"},
			Files:  map[string]string{"part-0000.parquet": mounttest.Parquet(t, 10)},
		}},
	}}}})
	lake.Catalog.Server.In("123456789012").AddDatabase(`{"Name": "partner"}`)
	server, bucket := lake.Bucket()
	m := &machine{lake: lake, dir: t.TempDir()}
	home, mnt := filepath.Join(m.dir, "home"), filepath.Join(m.dir, "mnt/lake")
	data := filepath.Join(m.dir, "new")
	for _, d := range []string{filepath.Join(home, "lake"), mnt, data, filepath.Join(m.dir, "bin")} {
		must(t, os.MkdirAll(d, 0o755))
	}
	t.Cleanup(func() {
		for _, at := range []string{mnt, filepath.Join(home, "lake"), filepath.Join(m.dir, "demo/lake")} {
			mounttest.Detach(at)
		}
	})
	parquet := filepath.Join(data, "new.parquet")
	must(t, os.WriteFile(parquet, []byte(mounttest.Parquet(t, 10)), 0o644))
	m.places = strings.NewReplacer("s3://lake/wh/", "s3://"+bucket+"/wh/", "/srv/warehouse", source, "/mnt/lake", mnt,
		"/var/cache/lake", filepath.Join(m.dir, "cache"), "/data/", data+"/", "bin/lakefs-mount", "lakefs-mount",
		"STATE_DIR", filepath.Join(m.dir, "state"), ":9105", ":"+freePort(t))
	m.prologue = m.places.Replace(fmt.Sprintf(`set -e
unset ${!LAKEFS_MOUNT_@}
export HOME=%q GOCACHE=%q GOMODCACHE=%q AWS_ENDPOINT_URL_S3=%q AWS_ENDPOINT_URL_GLUE=%q
dir=%q program=%q repository=%q parquet=%q
cd
# The status of other tests, which asks each mount of the machine, may be in the way.
leave() { for try in 1 2 3 4; do "$program" unmount "$1" && return; sleep 1; done; return 1; }
trap 'code=$?; cd; for at in ~/lake /mnt/lake; do ! mountpoint -q "$at" || leave "$at"; done; exit $code' EXIT
mounted() { "$program" mount --daemon "$@"; ls "${@: -1}" >/dev/null; }
lakefs-mount() {
	[ "$1" = mount ] || { "$program" "$@"; return; }
	shift
	mounted "$@"
	leave "${@: -1}"
}
`, home, goEnv(t, "GOCACHE"), goEnv(t, "GOMODCACHE"), server.Endpoint, lake.Catalog.Endpoint, m.dir, lake.Binary(), mounttest.ModuleRoot(t), parquet))
	return m
}

// goEnv is a setting of the go command, for a home that has none of its caches.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	must(t, l.Close())
	return port
}

func (m *machine) run(t *testing.T, x trial, b block) {
	t.Helper()
	script := m.prologue
	switch x.at {
	case "s3":
		script += m.places.Replace("mounted s3://lake/wh/ ~/lake\n")
	case "glue":
		script += "mounted --catalog-writes=entries glue: ~/lake\n"
	}
	script += m.places.Replace(x.before+"\n") + m.places.Replace(b.text) + m.places.Replace(x.after+"\n")
	if x.at != "" {
		script += "cd; leave ~/lake\n"
	}
	if r := m.lake.Exec("timeout", "--kill-after=1", "30", "bash", "-xc", script); r.Code != 0 {
		t.Errorf("exit code %d, want 0, of\n%s\nstdout: %s\nstderr: %s", r.Code, b.text, r.Out, r.Err)
	}
}
