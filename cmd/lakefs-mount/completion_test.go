package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// bashCompletion is where Debian's package has it.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// inBash completes a line as bash does in dir, the cursor at its end.
func inBash(t *testing.T, lake *mounttest.Lake, dir, line string) []string {
	t.Helper()
	if !exists(bashCompletion) {
		t.Skip("no bash-completion here (make deps installs it)")
	}
	// compopt changes how readline goes on, which is not there.
	script := `cd "$DIR"; source ` + bashCompletion + `; compopt() { :; }
		source <(lakefs-mount completion bash)
		COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_TYPE=9 COMP_KEY=9
		read -ra COMP_WORDS <<< "${LINE//=/ = }"
		[[ $LINE == *" " ]] && COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		__start_lakefs-mount
		printf "%s\n" "${COMPREPLY[@]}"`
	r := lake.Exec("env", "PATH="+filepath.Dir(lake.Binary())+":"+os.Getenv("PATH"), "LINE="+line, "DIR="+dir, "HOME="+dir, "bash", "-c", script)
	if r.Code != 0 || r.Err != "" {
		t.Errorf("%q: exit code %d, %s", line, r.Code, r.Err)
	}
	var words []string
	for word := range strings.Lines(r.Out) {
		word, _, _ = strings.Cut(word, "  (") // its description
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

func TestBashCompletes(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	dir := filepath.Dir(lake.Root)
	for name, text := range map[string]string{"a.yaml": "", "b.txt": "", ".aws/config": "[default]\n[profile lab]\n[sso-session s]\n", ".aws/credentials": "[lab]\n[prod]\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lake.Start()
	for _, tt := range []struct {
		line string
		want []string
	}{
		{"lakefs-mount unm", []string{"unmount"}},
		{"lakefs-mount unmount ", []string{lake.Root}},
		{"lakefs-mount status ", []string{lake.Root}},
		{"lakefs-mount recover ", []string{lake.Root}},
		{"lakefs-mount mount --write=", []string{"create", "delete", "none", "overwrite"}},
		{"lakefs-mount mount --write ", []string{"create", "delete", "none", "overwrite"}},
		{"lakefs-mount mount --log-level d", []string{"debug"}},
		{"lakefs-mount mount --metadata-t", []string{"--metadata-ttl"}},
		{"lakefs-mount mount --profile ", []string{"default", "lab", "prod"}},
		{"lakefs-mount check --sse aws:kms:", []string{"dsse"}},
		{"lakefs-mount mount --config ", []string{"a.yaml"}},
		{"lakefs-mount mount gl", []string{"glue:"}},
		{"lakefs-mount mount " + lake.Source[:len(lake.Source)-2], []string{lake.Source + "/"}},
		{"lakefs-mount completion ", []string{"bash", "fish", "zsh"}},
		{"lakefs-mount man lakefs-mount.", []string{"lakefs-mount.yaml"}},
		{"lakefs-mount version --", []string{"--help", "--json"}},
	} {
		got := slices.DeleteFunc(inBash(t, lake, dir, tt.line), func(word string) bool {
			_, mounted, _ := mountedAt(word) // of another test, or of who uses this machine
			return mounted && word != lake.Root || strings.HasSuffix(tt.line, "--config ") && isDirectory(filepath.Join(dir, word))
		})
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q is completed to %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestNamesThatAreNoLineAreNotCompleted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"plain é", "new\nline", "esc\x1b[2J", "\xff"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, _, _ := call(t, "lakefs-mount", nil, "__completeNoDesc", "mount", dir+"/")
	if want := dir + "/plain é/\n:6\n"; out != want {
		t.Errorf("completed to %q, want %q", out, want)
	}
}

func TestFishCompletes(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	if _, err := exec.LookPath("fish"); err != nil {
		t.Skip("no fish here")
	}
	lake := mounttest.New(t, sales(t))
	for line, want := range map[string]string{"lakefs-mount unm": "unmount", "lakefs-mount mount --write=ov": "--write=overwrite", "lakefs-mount mount gl": "glue:"} {
		r := lake.Exec("env", "PATH="+filepath.Dir(lake.Binary())+":"+os.Getenv("PATH"), "HOME="+filepath.Dir(lake.Root), "LINE="+line,
			"fish", "-c", "lakefs-mount completion fish | source; complete -C $LINE")
		if word, _, _ := strings.Cut(strings.TrimSpace(r.Out), "\t"); r.Code != 0 || word != want {
			t.Errorf("%q is completed to %q, want %q (exit code %d, %s)", line, r.Out, want, r.Code, r.Err)
		}
	}
}

func TestMountOptionsAreCompleted(t *testing.T) {
	for typed, want := range map[string]string{"ro,wri": "ro,write=", "allow-o": "allow-other", "ro,on_killed=": "ro,on_killed=publish"} {
		out, _, _ := call(t, "lakefs-mount", nil, "__completeNoDesc", "/srv", "/mnt", "-o", typed)
		if !strings.Contains(out, want+"\n") {
			t.Errorf("-o %s is completed to %q, which lacks %q", typed, out, want)
		}
	}
}

// TestCompletionsAreScriptsOfTheirShells, as far as the shells are here.
func TestCompletionsAreScriptsOfTheirShells(t *testing.T) {
	for _, shell := range shells() {
		out, stderr, code := call(t, "lakefs-mount", nil, "completion", shell)
		if code != exitOK || !strings.Contains(out, "lakefs-mount") {
			t.Errorf("completion %s: exit code %d, %s", shell, code, stderr)
			continue
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), shell, "-n")
		cmd.Stdin = strings.NewReader(out)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", shell, err, said)
		}
	}
	if _, stderr, code := call(t, "lakefs-mount", nil, "completion", "fissh"); code != exitUsage || !strings.Contains(stderr, "the nearest is fish") {
		t.Errorf("completion fissh: exit code %d, %s", code, stderr)
	}
}
