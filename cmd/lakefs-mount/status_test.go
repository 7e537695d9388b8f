package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// followsSchema checks what `status --json` printed against docs/status.schema.json.
func followsSchema(t *testing.T, printed string) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../docs/status.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(printed))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
}

func TestStatusFollowsItsSchema(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	lake.MustSh(`cd sales/notes; echo x >dt=2026-01-01/one.lock; mkdir .lakefs/txn/t; mkdir .lakefs/txn/empty; echo 3,x >.lakefs/txn/t/b.csv`)
	r := lake.Run("status", "--json", lake.Root)
	followsSchema(t, r.Out)
	for _, want := range []string{`"state": "torn"`, `"hold": "local"`, `"half_published": false`, `"metrics": {`} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("status --json lacks %s, which was to be checked: %s", want, r.Out)
		}
	}
	lake.Kill()
	r = lake.Run("status", "--json", lake.Root)
	followsSchema(t, r.Out)
	if !strings.Contains(r.Out, `"state": "dead"`) {
		t.Errorf("status of a dead mount is %s", r.Out)
	}
}

func TestStatusOfBucketsAndGlueFollowsItsSchema(t *testing.T) {
	disk, _, _ := diskLake(t, map[string]string{"a.csv": "1,one\n"})
	disk.Start()
	disk.MustSh("cat " + part + "a.csv; echo 2,two >" + part + "b.csv")
	r := disk.Run("status", "--json", disk.Root)
	followsSchema(t, r.Out)
	for _, want := range []string{`"disk_cache": {`, `"if_none_match": "`} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("status --json of a bucket lacks %s: %s", want, r.Out)
		}
	}
	glue := mounttest.Mount(t, glueNotes())
	r = glue.Run("status", "--json", glue.Root)
	followsSchema(t, r.Out)
	if !strings.Contains(r.Out, `"region": "`) {
		t.Errorf("status --json of Glue lacks the catalog: %s", r.Out)
	}
}

// TestTheSchemaOfStatusRefuses what status does not print.
func TestTheSchemaOfStatusRefuses(t *testing.T) {
	c := jsonschema.NewCompiler()
	schema, err := c.Compile("../../docs/status.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{}`, `[{}]`, `[{"mountpoint": "/m", "source": "/s", "state": "running"}]`, `[{"mountpoint": "/m", "source": "/s", "state": "lost"}]`,
		`[{"mountpoint": "/m", "source": "/s", "state": "dead", "more": 1}]`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil || schema.Validate(v) == nil {
			t.Errorf("%s is taken (%v)", text, err)
		}
	}
}

// documentedStatus is of a mount with something of each kind.
func documentedStatus(t *testing.T) []mountStatus {
	t.Helper()
	at := func(before time.Duration) string {
		return time.Now().Add(-before - 500*time.Millisecond).UTC().Format(time.RFC3339Nano)
	}
	status := `{"mount": {"store": {"kind": "s3", "endpoint": "https://s3.eu-north-1.amazonaws.com", "conditional_writes": {"if_match": "honoured", "if_none_match": "honoured"}},
		"disk_cache": {"dir": "/var/cache/lake", "limit_bytes": 21474836480, "bytes": 3221225472, "hits": 480, "misses": 160}},
		"staged": [
		{"write_id": "0b8dd3a4-5a3f-4b6e-8d0e-1f0d0a8f2c11", "path": "sales/orders/dt=2026-11-30/part-7.parquet", "state": "staged", "open": true, "size": 8388608, "uploaded": 8388608, "uploading": true, "changed": "` + at(2*time.Second) + `"},
		{"write_id": "5c1d6c52-98a1-4d5b-9d0c-0a7d7f6f9be2", "path": "sales/orders/dt=2026-11-30/part-6.csv", "state": "torn", "size": 4194304, "changed": "` + at(11*time.Minute) + `"},
		{"write_id": "f3b7a0de-11c9-4a0f-a1de-6a1f3d4c5b76", "path": "sales/notes/café\u001b.csv", "state": "failed", "size": 2048, "changed": "` + at(time.Hour) + `", "error": "AccessDenied (status 403)"}],
		"transactions": [{"path": "sales/orders/.lakefs/txn/november", "files": 3, "bytes": 12582912, "created": "` + at(5*time.Minute) + `"}]}`
	_, later := busyMount(t)
	samples := map[string]float64{}
	for name, family := range later.metrics {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				samples[name+`_count{operation="`+labelOf(m, "operation")+`",outcome="`+labelOf(m, "outcome")+`"}`] = float64(h.GetSampleCount())
				continue
			}
			samples[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return []mountStatus{
		{MountPoint: "/mnt/lake", Source: "s3://lake/wh/", State: "running", Version: "v1.0.0", Status: json.RawMessage(status), Metrics: samples},
		{MountPoint: "/mnt/old lake", Source: "/srv/warehouse", State: "dead"},
	}
}

// TestStatusIsInTheDocumentation as it is printed.
func TestStatusIsInTheDocumentation(t *testing.T) {
	var out bytes.Buffer
	p := &program{stdout: &out}
	if err := p.printStatus(documentedStatus(t)); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(out.String(), detachCommand("/mnt/old lake"), "fusermount3 -u -z '/mnt/old lake'") // root has another
	documents(t, "$ lakefs-mount status\n"+text)
}

func TestStatusIsColouredOnATerminalAlone(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	for _, tt := range []struct {
		env      []string
		coloured bool
	}{{nil, true}, {[]string{"NO_COLOR=1"}, false}, {[]string{"NO_COLOR="}, true}, {[]string{"TERM=dumb"}, false}} {
		r := startOnTerminal(t, lake, tt.env, "status", lake.Root)
		if code := r.ends(); code != 0 || strings.Contains(r.shown(), "\x1b[32mrunning\x1b[m") != tt.coloured || strings.Contains(r.shown(), "\x1b") != tt.coloured {
			t.Errorf("with %q: exit code %d, %q, coloured: want %v", tt.env, code, r.shown(), tt.coloured)
		}
	}
	if r := lake.Run("status", lake.Root); strings.Contains(r.Out, "\x1b") {
		t.Errorf("without a terminal: %q", r.Out)
	}
}

func TestTextTableAlignsWhatIsSeen(t *testing.T) {
	var table textTable
	table.heading(true, "A", "B", "C")
	table.row("日本", paint(true).in(red, "x"), "1")
	table.row("abc", "yy", "")
	table.row("a title that is longer than any cell")
	var out bytes.Buffer
	if err := table.write(&out); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mA\x1b[m     \x1b[1mB\x1b[m   \x1b[1mC\x1b[m\n日本  \x1b[31mx\x1b[m   1\nabc   yy\na title that is longer than any cell\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}
