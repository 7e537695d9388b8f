// Package glueworld_test holds the mount to what real writers leave: awswrangler,
// PyIceberg and boto3 fill moto's Glue and versitygw's S3, the AWS CLI says what
// the catalog has, DuckDB and pyarrow read the mount by path. TestSpark does the
// same with Spark, by `make test-spark` alone.
package glueworld_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

var update = flag.Bool("update", false, "write what was seen into the golden files")

// totals are the rows of a table, and the sum of their id.
type totals struct {
	Rows int64 `json:"rows"`
	Sum  int64 `json:"sum"`
}

// world is a lake that real writers filled.
type world struct {
	lake *mounttest.Lake
	cli  cli
	told map[string]totals // what the writers say of their tables
}

// newWorld fills a catalog by world.py. It is not mounted.
func newWorld(t *testing.T) *world {
	t.Helper()
	mounttest.Venv(t, "python3", "awswrangler", "pyiceberg", "boto3", "duckdb", "pyarrow", "awscli")
	lake := mounttest.New(t, mounttest.Options{
		Glue: &mounttest.Glue{Endpoint: s3test.FreshMoto(t).Endpoint, Buckets: 2}, Timeout: 5 * time.Minute,
	})
	w := &world{lake: lake}
	out := w.python(t, "world.py", lake.Catalog.Endpoint, w.endpoint(), lake.Catalog.Buckets[0], lake.Catalog.Buckets[1])
	decode(t, out, &w.told)
	w.startCLI(t)
	return w
}

// sh runs a script in the mount, which must succeed, and returns what it prints.
func (w *world) sh(t *testing.T, script string) string {
	t.Helper()
	r := w.lake.Sh(script)
	if r.Code != 0 {
		t.Fatalf("%s\nexit code %d, want 0\nstdout: %s\nstderr: %s", script, r.Code, r.Out, r.Err)
	}
	return r.Out
}

// endpoint is that of S3.
func (w *world) endpoint() string {
	server, _ := w.lake.Bucket()
	return server.Endpoint
}

// python runs a script of testdata with the credentials of the world, which must
// succeed, and returns what it prints.
func (w *world) python(t *testing.T, script string, args ...string) string {
	t.Helper()
	return run(t, "", w.env(t), mounttest.Venv(t, "python3"), append([]string{filepath.Join("testdata", script)}, args...)...)
}

// env has the credentials of the world, and no others.
func (w *world) env(t *testing.T) []string {
	t.Helper()
	server, _ := w.lake.Bucket()
	return append(server.Env(), "HOME="+t.TempDir(), "AWS_CONFIG_FILE=testdata/aws.config", "PATH="+os.Getenv("PATH"), "LC_ALL=C.UTF-8")
}

// runTimeout bounds one program; Spark on a busy machine takes minutes.
const runTimeout = 15 * time.Minute

// run runs a program with this environment and no other.
func run(t *testing.T, input string, env []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader(input), &stdout, &stderr, 5*time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", filepath.Base(program), strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// cli is the AWS CLI, as a process that runs one command after the other.
type cli struct {
	in  io.Writer
	out *bufio.Reader
}

// startCLI starts it for the catalog of the world, until the test ends.
func (w *world) startCLI(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), mounttest.Venv(t, "python3"), "testdata/cli.py", w.lake.Catalog.Endpoint)
	cmd.Env, cmd.Stderr = w.env(t), os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it was ended with the test's context
	w.cli = cli{in, bufio.NewReader(out)}
}

// aws runs `aws glue ARGUMENTS…`, which must succeed, and returns what it prints.
func (w *world) aws(t *testing.T, args ...string) string {
	t.Helper()
	line, err := json.Marshal(append([]string{"glue"}, args...))
	must(t, err)
	_, err = w.cli.in.Write(append(line, '\n'))
	must(t, err)
	printed, err := w.cli.out.ReadString('\n')
	must(t, err)
	var answer [2]any
	decode(t, printed, &answer)
	out, isText := answer[1].(string)
	if answer[0] != 0.0 || !isText {
		t.Fatalf("aws glue %s: exit code %v", strings.Join(args, " "), answer[0])
	}
	return out
}

// random are the parts of names that are new in each run.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\b[1-9]\d{14,}\b`)

// golden holds text to be that of a file of testdata, with RANDOM for random parts
// of names, and BUCKET and OTHER for the buckets.
func (w *world) golden(t *testing.T, name, got string) {
	t.Helper()
	got = random.ReplaceAllString(got, "RANDOM")
	for i, bucket := range w.lake.Catalog.Buckets {
		got = strings.ReplaceAll(got, bucket, []string{"BUCKET", "OTHER"}[i])
	}
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644)) //nolint:gosec // a file of the repository
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// sorted are JSON texts as `jq -S` prints them.
func sorted(t *testing.T, texts ...string) []string {
	t.Helper()
	// One process: a line each.
	lines := strings.Split(strings.TrimSuffix(run(t, strings.Join(texts, "\n"), os.Environ(), "jq", "-cS", "."), "\n"), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("jq printed %d texts of %d", len(lines), len(texts))
	}
	return lines
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// names are the tables of a database by the AWS CLI's get-tables.
func names(t *testing.T, tables string) []string {
	t.Helper()
	var answer struct{ TableList []struct{ Name string } }
	decode(t, tables, &answer)
	var list []string
	for _, table := range answer.TableList {
		list = append(list, table.Name)
	}
	slices.Sort(list)
	return list
}
