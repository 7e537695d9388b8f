package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// finding is one thing that was looked at.
type finding struct {
	what    string
	table   string // of a table: its path
	problem string // "": none
	remedy  string
	detail  string // where there is no problem
	warning bool   // the problem keeps nothing from working
}

func (p *program) checkCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [flags] [SOURCE]",
		Short: "Show what works here and what does not, and why",
		Args:  arguments(0, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeSource(typed)
		},
	}
	p.addSettings(cmd, slices.Concat(settings.S3Names(), settings.GlueNames(), []string{
		"database", "table", "config", "io-timeout", "read-only", "write", "catalog-writes",
		"allow-location", "allow-other", "state-dir", "manifest-max-bytes", "manifest-max-columns", "manifest-max-keys",
	})...)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resolved, err := settings.Resolve(settings.FromFlags(cmd.Flags()), p.environ)
		if err != nil {
			return usageError{err}
		}
		return p.check(cmd.Context(), resolved, args, asJSON)
	}
	return cmd
}

// findingJSON is a finding as check --json prints it.
type findingJSON struct {
	What    string `json:"what"`
	State   string `json:"state"` // ok, warning, failed
	Detail  string `json:"detail,omitempty"`
	Problem string `json:"problem,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

func (f finding) state() string {
	switch {
	case f.problem == "":
		return "ok"
	case f.warning:
		return "warning"
	}
	return "failed"
}

// printFinding shows one finding to people.
func (p *program) printFinding(f finding) {
	mark := map[string]string{"ok": "ok   ", "warning": "warn ", "failed": "FAIL "}[f.state()]
	if f.problem == "" {
		p.printf("%s %s: %s\n", mark, printable(f.what), printable(f.detail))
		return
	}
	p.printf("%s %s: %s\n", mark, printable(f.what), printable(f.problem))
	if f.remedy != "" {
		p.printf("      %s\n", printable(f.remedy))
	}
}

func (p *program) check(ctx context.Context, resolved settings.Resolved, args []string, asJSON bool) error {
	failed := 0
	all := []findingJSON{}
	report := func(f finding) {
		if f.state() == "failed" {
			failed++
		}
		if !asJSON {
			p.printFinding(f)
			return
		}
		all = append(all, findingJSON{What: f.what, State: f.state(), Detail: f.detail, Problem: f.problem, Remedy: f.remedy})
	}
	report(checkDevice())
	report(checkFusermount(resolved.AllowOther))
	report(checkKernel(len(args) == 1 && inBucket(args[0])))
	r := &request{settings: resolved, mountpoint: "check"}
	if len(args) == 1 {
		p.checkSource(ctx, r, args[0], report)
	}
	report(p.checkState(r)) //nolint:contextcheck // opening a staging directory waits for nothing
	if asJSON {
		if err := p.printJSON(all); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of these do not work", failed)
	}
	return nil
}

// printable is a message that cannot drive a terminal, whatever names are in it.
func printable(message string) string {
	var b strings.Builder
	for _, r := range message {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// fromError is a finding of a check that is all or nothing.
func fromError(what, detail string, err error) finding {
	if err == nil {
		return finding{what: what, detail: detail}
	}
	problem, remedy, _ := strings.Cut(err.Error(), "; ")
	return finding{what: what, problem: problem, remedy: remedy}
}

func checkDevice() finding {
	return fromError("/dev/fuse", "can be opened", deviceUsable("/dev/fuse"))
}

func checkFusermount(allowOther bool) finding {
	if os.Geteuid() == 0 {
		return finding{what: "fusermount3", detail: "not needed by root"}
	}
	path, _ := exec.LookPath("fusermount3") // fuseUsable tells
	return fromError("fusermount3", path, fuseUsable(allowOther))
}

// inBucket tells whether a SOURCE names a bucket.
func inBucket(text string) bool {
	s, err := parseSource(text)
	return err == nil && s.onS3()
}

// checkKernel looks at this kernel for a lake in a bucket, or in a folder.
func checkKernel(bucket bool) finding {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fromError("kernel", "", err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor) // unknown: 0.0
	version := major*1000 + minor
	switch {
	case version < 5008:
		return finding{what: "kernel", problem: "Linux " + release + " is too old", remedy: "Linux 5.8 or newer is needed"}
	case bucket: // nothing of it is a local file
		return finding{what: "kernel", detail: "Linux " + release + ", files are read through the mount"}
	case version < 6009:
		return finding{what: "kernel", detail: "Linux " + release + ", files are read through the mount (passing them through needs 6.9)"}
	case os.Geteuid() != 0:
		return finding{what: "kernel", detail: "Linux " + release + ", files are read through the mount (passing them through needs root)"}
	}
	return finding{what: "kernel", detail: "Linux " + release + ", files are passed through"}
}

func (p *program) checkSource(ctx context.Context, r *request, source string, report func(finding)) {
	if err := p.setSource(ctx, r, source); err != nil {
		report(fromError("source", "", err))
		return
	}
	report(finding{what: "source", detail: r.source.String()})
	log := newLogger(p.stderr, settings.Values{LogLevel: 12}) // the findings tell
	store, roots, err := openStore(r, log, nil)
	report(fromError("allowed locations", rootsText(roots), err))
	if err != nil {
		return
	}
	defer store.Close() //nolint:errcheck // nothing was written
	if !r.source.onS3() {
		report(checkAttributes(r.source.folder))
	}
	view, src := newTree(r, parts{store: store, roots: roots, log: log})
	defer src.Close()  //nolint:errcheck // nothing was written
	defer view.Close() //nolint:errcheck,contextcheck // nothing was written
	if s3, ok := store.(*objectstore.S3); ok {
		bucket := bucketCheck{r: r, store: s3, report: report}
		if r.source.glue {
			(&catalogCheck{bucketCheck: bucket, src: src, view: view}).run(ctx)
			return
		}
		if !bucket.run(ctx, roots) {
			return
		}
	}
	good, err := checkCatalog(ctx, view, report)
	report(fromError("catalog", fmt.Sprintf("%d tables can be read", good), err))
}

// rootsText shows where tables may lie.
func rootsText(roots []string) string {
	if len(roots) == 0 {
		return "every bucket that the catalog names"
	}
	return strings.Join(roots, ", ")
}

// checkAttributes tells whether the folder keeps user extended attributes.
func checkAttributes(dir string) finding {
	_, err := unix.Getxattr(dir, "user.lakefs-write-id", nil)
	if errors.Is(err, errors.ErrUnsupported) {
		return finding{what: "extended attributes", detail: "not kept by this file system: after a crash a finished publish is recognised by its content"}
	}
	return finding{what: "extended attributes", detail: "kept"}
}

// checkCatalog reads every entry, reports each table that cannot be read, and
// returns how many can. An error: the catalog itself cannot be listed.
func checkCatalog(ctx context.Context, view *catalogview.View, report func(finding)) (good int, err error) {
	for database, err := range view.ReadDir(ctx, "") {
		if err != nil {
			return good, err
		}
		if database.Kind != catalogview.KindDatabase {
			continue
		}
		for node, err := range view.ReadDir(ctx, database.Path) {
			if err != nil {
				report(finding{what: fmt.Sprintf("database %q", database.Path), problem: err.Error()})
				break
			}
			if node.Kind != catalogview.KindTable && node.Kind != catalogview.KindEntry {
				continue
			}
			f, isTable := checkTable(ctx, view, node)
			switch {
			case !isTable:
			case f.problem == "":
				good++
			default:
				report(f)
			}
		}
	}
	return good, nil
}

// checkTable looks at the table of a node. Of a table that has a directory the
// entry says nothing more.
func checkTable(ctx context.Context, view *catalogview.View, node catalogview.Node) (finding, bool) {
	name := strings.TrimSuffix(node.Path, ".json")
	what := fmt.Sprintf("table %q", name)
	if node.Kind == catalogview.KindTable {
		// A listing need not have loaded the entry.
		full, err := view.Lookup(ctx, node.Path)
		if err != nil {
			return finding{what: what, table: name, problem: err.Error()}, !errors.Is(err, objectstore.ErrNotExist)
		}
		node = full
	}
	t := node.Table
	if t == nil || (node.Kind == catalogview.KindEntry && t.Class != table.ClassView) {
		return finding{}, false
	}
	if t.Readable || t.Class == table.ClassView {
		return finding{what: what}, node.Kind == catalogview.KindTable
	}
	return finding{what: what, table: name, problem: tableProblem(t), remedy: tableRemedy(t, node.Path)}, true
}

// allowable is the directory that --allow-location would have to name for the
// table to be served, "" where the flag is no remedy.
func allowable(t *table.Table) string {
	dir := t.Outside
	if strings.Contains(dir, "{user}") || exists(dir) && !isDirectory(dir) { // the flag replaces {user}
		return ""
	}
	return dir
}

// tableProblem is why a table cannot be read.
func tableProblem(t *table.Table) string {
	switch {
	case t.Outside == "" || allowable(t) != "":
		return t.Reason
	case strings.Contains(t.Outside, "{user}"):
		return fmt.Sprintf("location %.300q: a location is one directory for all users", t.Location)
	}
	return fmt.Sprintf("location %.300q is no directory", t.Location)
}

// tableRemedy says what to do about a table that cannot be read.
func tableRemedy(t *table.Table, path string) string {
	dir := allowable(t)
	switch {
	case isDirectory(dir) || strings.HasPrefix(dir, "s3://"):
		return "if it may be served, mount with --allow-location " + shellQuote(dir)
	case dir != "":
		return "if it may be served, make it and mount with --allow-location " + shellQuote(dir)
	}
	return fmt.Sprintf("mend its _sqe/table.json; see %q and %q in the mount", path+".json", path+"/.lakefs/status.json")
}

// checkState opens a staging directory beside those of mounts.
func (p *program) checkState(r *request) finding {
	const what = "state directory"
	dir, err := p.stateDir(r)
	if err == nil {
		err = stateApart(r, dir)
	}
	if err != nil {
		return fromError(what, "", err)
	}
	made := !exists(dir)
	if err = makeStateDir(dir); err != nil {
		return fromError(what, "", err)
	}
	scratch := filepath.Join(dir, fmt.Sprintf("check-%d", os.Getpid()))
	area, err := staging.Open(scratch, staging.Options{})
	if err == nil {
		err = area.Close()
	}
	free := stagedMax(0, dir) * 2
	err = errors.Join(err, os.RemoveAll(scratch))
	if made {
		err = errors.Join(err, os.Remove(dir))
		dir = filepath.Dir(dir)
	}
	if err == nil && free < 1<<30 {
		return finding{what: what, problem: fmt.Sprintf("%s has %s free", dir, sizeText(free)), remedy: "it needs room for the largest file being written; make room, or choose another with --state-dir"}
	}
	return fromError(what, fmt.Sprintf("%s, %s free", dir, sizeText(free)), err)
}
