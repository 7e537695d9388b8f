package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// promtool runs the checker that comes with Prometheus.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	found, err := exec.CommandContext(t.Context(), filepath.Join(root, "tools", "promtool.sh")).Output()
	if err != nil {
		if os.Getenv("MOUNTTEST_REQUIRED") != "" {
			t.Fatalf("no promtool: %v", err)
		}
		t.Skipf("no promtool here (make deps gets it): %v", err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(found)), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

func TestExpositionPassesPromtool(t *testing.T) {
	promtool(t, text(t, newSet()), "check", "metrics")
}

func TestAlertsPassPromtool(t *testing.T) {
	dir := filepath.Join(root, "packaging", "prometheus")
	promtool(t, "", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(dir, "alerts.yml"))
	promtool(t, "", "test", "rules", filepath.Join(dir, "alerts_test.yml"))
}

// Each alert has a case that raises it.
func TestEveryAlertIsTested(t *testing.T) {
	cases := string(readFile(t, "packaging/prometheus/alerts_test.yml"))
	all := regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(readFile(t, "packaging/prometheus/alerts.yml"), -1)
	if len(all) == 0 {
		t.Error("no alerts")
	}
	for _, alert := range all {
		if !strings.Contains(cases, "alertname: "+string(alert[1])+"\n        exp_alerts:") {
			t.Errorf("no case raises %s", alert[1])
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// panel is what a dashboard shows; a row has none of its own.
type panel struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	Type    string `json:"type"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func dashboard(t *testing.T) []panel {
	t.Helper()
	var d struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(readFile(t, "packaging/grafana/lakefs-mount.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

func TestDashboardPassesPromtool(t *testing.T) {
	rules := "groups:\n- name: dashboard\n  rules:\n"
	ids := map[int]bool{}
	for _, p := range dashboard(t) {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.Title == "" || (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("panel %d %q is not well: %+v", p.ID, p.Title, p)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			rules += fmt.Sprintf("  - record: panel_%d_%d\n    expr: %q\n", p.ID, i, expr)
		}
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", path)
}

// TestWhatIsShownAndAlertedOnExists: every name and every value of a label in the
// dashboard and the alerts is in the exposition, and the dashboard shows every metric.
func TestWhatIsShownAndAlertedOnExists(t *testing.T) {
	have := text(t, newSet())
	names := map[string]bool{}
	for line := range strings.Lines(have) {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		names[name] = true
	}
	shown := string(readFile(t, "packaging/grafana/lakefs-mount.json"))
	for _, used := range []string{strings.ReplaceAll(shown, `\"`, `"`), string(readFile(t, "packaging/prometheus/alerts.yml"))} {
		found := regexp.MustCompile(`\b(lakefs_mount|process|go)_[a-z_]+`).FindAllString(used, -1)
		if len(found) == 0 {
			t.Error("no metric is used")
		}
		for _, name := range found {
			if !names[name] {
				t.Errorf("no metric %s", name)
			}
		}
		for _, matcher := range regexp.MustCompile(`\b(operation|outcome|direction|holder)=~?"([^"$]+)"`).FindAllStringSubmatch(used, -1) {
			for value := range strings.SplitSeq(matcher[2], "|") {
				if !strings.Contains(have, matcher[1]+`="`+value+`"`) {
					t.Errorf("no %s is %q", matcher[1], value)
				}
			}
		}
	}
	for _, row := range documented(t) {
		if !strings.Contains(shown, row.name) && !slices.Contains(unshown(), row.name) {
			t.Errorf("the dashboard shows nothing of %s", row.name)
		}
	}
}

// unshown are metrics for a closer look, of which the dashboard has nothing.
func unshown() []string {
	return []string{
		"lakefs_mount_open_redirects_total", "lakefs_mount_cache_fetches_total", "lakefs_mount_cache_uncached_total",
		"lakefs_mount_prefetched_bytes_total", "lakefs_mount_local_files", "lakefs_mount_local_bytes",
	}
}

type metricRow struct{ name, kind, labels, help string }

// documented are the mount's own metrics, as docs/operations.md shows them.
func documented(t *testing.T) []metricRow {
	t.Helper()
	families, err := newSet().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var rows []metricRow
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "lakefs_mount_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		rows = append(rows, metricRow{f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()})
	}
	return rows
}

func TestEveryMetricIsInTheTableOfTheDocumentation(t *testing.T) {
	table := "| metric | kind | labels | |\n|---|---|---|---|\n"
	for _, r := range documented(t) {
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", r.name, r.kind, r.labels, r.help)
	}
	if docs := string(readFile(t, "docs/operations.md")); !strings.Contains(docs, "\n"+table+"\n") {
		t.Errorf("docs/operations.md lacks this table:\n%s", table)
	}
}
