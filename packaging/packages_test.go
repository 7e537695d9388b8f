// Package packaging_test holds the packages, units and examples to what they promise.
// What needs root, minutes and a fresh Debian runs with MOUNTTEST_PACKAGES=1, which
// make test-packages sets.
package packaging_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// long leaves a test out of make test.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("MOUNTTEST_PACKAGES") == "" {
		t.Skip("make test-packages runs it")
	}
}

func TestKubernetesExamplesAreValid(t *testing.T) {
	validate := mounttest.Venv(t, "kubernetes-validate")
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		out := command(t, time.Minute, validate, "--strict", "packaging/"+f)
		if strings.Count(out, " passed ") != strings.Count(out, "\n") {
			t.Errorf("%s:\n%s", f, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	content, err := os.ReadFile("kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, bytes.Replace(content, []byte("mountPropagation: Bidirectional"), []byte("mountPropagation: 7"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), validate, "--strict", bad).CombinedOutput(); err == nil {
		t.Errorf("a wrong one passes:\n%s", out)
	}
}

func TestExampleSettingsLoad(t *testing.T) {
	r, err := settings.Resolve(settings.Given{"config": {"examples/lake.yaml"}}, nil)
	if err != nil || !r.AllowOther {
		t.Errorf("%v, %+v", err, r.Values)
	}
}

func TestUnitsVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	program, err := exec.LookPath("true") // verify wants it to be there
	if err != nil {
		t.Fatal(err)
	}
	var units []string
	for from, to := range map[string]string{
		"systemd/lakefs-mount@.service": "lakefs-mount@lake.service", "examples/mnt-lake.mount": "mnt-lake.mount", "examples/mnt-lake.automount": "mnt-lake.automount",
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.ReplaceAll(content, []byte("/usr/bin/lakefs-mount"), []byte(program))
		units = append(units, filepath.Join(dir, to))
		if err := os.WriteFile(units[len(units)-1], content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := command(t, time.Minute, analyze, append([]string{"verify", "--man=no"}, units...)...); strings.Contains(out, dir) {
		t.Error(out)
	}
}

// TestPackagesAreReproducible builds all of them twice, in two directories, the second
// time with an empty cache of Go.
func TestPackagesAreReproducible(t *testing.T) {
	long(t)
	var copies [2]string // both of the same moment: somebody may be at work here
	for i := range copies {
		copies[i] = filepath.Join(t.TempDir(), "a directory of the sources")
	}
	command(t, time.Minute, "sh", "-ec", `mkdir -p "$1"; git ls-files -z --cached --others --exclude-standard | tar --null -T- -c | tar -C "$1" -x; cp -r "$1" "$2"`, "copy", copies[0], copies[1])
	sums := func(at string, environ ...string) []byte {
		environ = append(environ, "VERSION=1.2.3", "REVISION=0123456789abcdef", "SOURCE_DATE_EPOCH=1700000000")
		command(t, 20*time.Minute, "env", append(environ, filepath.Join(at, "tools/packages.sh"), filepath.Join(at, "dist"))...)
		found, err := os.ReadFile(filepath.Join(at, "dist/SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first, second := sums(copies[0]), sums(copies[1], "GOCACHE="+t.TempDir(), "TZ=Asia/Tokyo")
	if !bytes.Equal(first, second) || bytes.Count(first, []byte("\n")) != 6 {
		t.Errorf("two builds:\n%s\n%s", first, second)
	}
}

// built is a package of this tree, of this machine's architecture: *.deb or *.rpm.
func built(t *testing.T, suffix string) string {
	t.Helper()
	dir := filepath.Join(mounttest.ModuleRoot(t), "dist")
	found, err := filepath.Glob(filepath.Join(dir, "lakefs-mount*"+suffix))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v; run make packages", suffix, found, err)
	}
	return found[0]
}

func TestLintian(t *testing.T) {
	long(t)
	for _, deb := range []string{built(t, "_amd64.deb"), built(t, "_arm64.deb")} {
		out := command(t, 5*time.Minute, "lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", deb)
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "N:") {
				t.Error(line)
			}
		}
	}
}

func TestRPM(t *testing.T) {
	long(t)
	for arch, rpm := range map[string]string{"x86_64": built(t, ".x86_64.rpm"), "aarch64": built(t, ".aarch64.rpm")} {
		command(t, time.Minute, "rpm", "--checksig", "--nosignature", rpm)
		info := command(t, time.Minute, "rpm", "-qp", "--queryformat", "%{NAME} %{ARCH} %{LICENSE}\n[%{REQUIRES}\n][%{FILENAMES}\n]", rpm)
		for _, want := range []string{
			"lakefs-mount " + arch + " Apache-2.0", "fuse3", "/usr/bin/lakefs-mount", "/usr/sbin/mount.lakefs-mount", "/usr/sbin/mount.fuse.lakefs-mount",
			"/usr/lib/systemd/system/lakefs-mount@.service", "/usr/share/man/man1/lakefs-mount.1.gz", "/usr/share/zsh/site-functions/_lakefs-mount",
			"/usr/share/licenses/lakefs-mount/LICENSE", "/usr/share/doc/lakefs-mount/THIRD-PARTY-NOTICES",
		} {
			if !strings.Contains("\n"+info, "\n"+want+"\n") {
				t.Errorf("%s: no %q in\n%s", rpm, want, info)
			}
		}
	}
}
