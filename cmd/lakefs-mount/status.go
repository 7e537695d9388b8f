package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/staging"
)

// mountStatus is what is known of one mount. Status is its .lakefs/status.json
// as it is; Metrics are the samples of .lakefs/stats by name and labels.
type mountStatus struct {
	MountPoint string             `json:"mountpoint"`
	Source     string             `json:"source"`
	State      string             `json:"state"` // running, dead, stuck (no answer in time), private (another user's)
	Version    string             `json:"version,omitempty"`
	Status     json.RawMessage    `json:"status,omitempty"`
	Metrics    map[string]float64 `json:"metrics,omitempty"`
}

func (p *program) statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] [MOUNTPOINT]",
		Short: "Show the mounts: unpublished files, uploads, cache, requests, errors",
		Args:  arguments(0, 1),

		ValidArgsFunction: completeMountPoint,
		RunE: func(cmd *cobra.Command, args []string) error {
			table, err := statusTable(cmd.Context(), args)
			if err != nil {
				return err
			}
			all := make([]mountStatus, len(table))
			var asking sync.WaitGroup // several that are stuck keep it waiting no longer than one
			for i, e := range table {
				asking.Go(func() { all[i] = statusOf(cmd.Context(), e) })
			}
			asking.Wait()
			if asJSON {
				return p.printJSON(all)
			}
			return p.printStatus(all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// statusTable are the mounts of ours, or the one that was named.
func statusTable(ctx context.Context, args []string) ([]tableEntry, error) {
	if len(args) == 1 {
		e, err := namedMount(ctx, args[0])
		return []tableEntry{e}, err
	}
	table, err := mountTable()
	if err != nil {
		return nil, err
	}
	var ours []tableEntry
	for _, e := range table {
		if e.ours() {
			ours = append(ours, e)
		}
	}
	return ours, nil
}

// namedMount is the mount of ours at a path, or around it. A mount point that is named as
// it is in the table is not touched: it may hang.
func namedMount(ctx context.Context, arg string) (tableEntry, error) {
	path, err := absolute("mount point", arg)
	if err != nil {
		return tableEntry{}, err
	}
	e, found, err := mountedAt(path)
	if err != nil || found && e.ours() {
		return e, err
	}
	path, err = bounded(ctx, answerTimeout, func() (string, error) { return mountPoint(path) })
	if err != nil {
		return tableEntry{}, err
	}
	return mountOf(path)
}

func statusOf(ctx context.Context, e tableEntry) mountStatus {
	s := mountStatus{MountPoint: e.path, Source: e.source, State: "running"}
	answer, err := askBounded(ctx, e.path, "status.json", "version", "stats")
	if err != nil {
		s.State = "stuck"
		return s
	}
	_, served := answer.file("")
	raw, err := answer.file("status.json")
	switch {
	case errors.Is(err, iofs.ErrPermission):
		s.State = "private"
	case served != nil:
		s.State = "dead"
	case err != nil:
		s.State = "stuck"
	}
	if s.State != "running" {
		return s
	}
	if json.Valid(raw) {
		s.Status = raw
	}
	if version, err := answer.file("version"); err == nil {
		s.Version = strings.TrimSpace(string(version))
	}
	if stats, err := answer.file("stats"); err == nil {
		s.Metrics = parseMetrics(string(stats))
	}
	return s
}

// parseMetrics reads the samples of the Prometheus text format, histogram
// buckets left out.
func parseMetrics(text string) map[string]float64 {
	samples := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' || strings.Contains(line, "_bucket{") {
			continue
		}
		if value, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			samples[line[:i]] = value
		}
	}
	return samples
}

// sum adds the samples of a metric that have the label ("" : all).
func (s mountStatus) sum(name, label string) float64 {
	var total float64
	for key, value := range s.Metrics {
		base, labels, _ := strings.Cut(key, "{")
		if base == "lakefs_mount_"+name && strings.Contains(labels, label) {
			total += value
		}
	}
	return total
}

func (p *program) printStatus(all []mountStatus) error {
	if len(all) == 0 {
		p.printf("No lake is mounted.\n")
		return nil
	}
	on := p.paint()
	var t textTable
	t.heading(on, "MOUNT POINT", "SOURCE", "STATE", "UNPUBLISHED", "UPLOADS", "OPEN", "CACHE HITS", "REQUESTS", "FAILED", "ERRORS")
	for _, s := range all {
		t.row(s.cells(on)...)
	}
	if err := t.write(p.stdout); err != nil {
		return err
	}
	for _, s := range all {
		if err := p.printMount(s); err != nil {
			return err
		}
	}
	return nil
}

// cells are the row of a mount in the table of all.
func (s mountStatus) cells(on paint) []string {
	if s.State != "running" {
		return []string{quoted(s.MountPoint), quoted(s.Source), on.in(red, s.State), "-", "-", "-", "-", "-", "-", "-"}
	}
	wrong := func(n float64) string {
		if n == 0 {
			return "0"
		}
		return on.in(red, fmt.Sprintf("%.0f", n))
	}
	unpublished := fmt.Sprintf("%.0f files, %s", s.sum("staged_writes", ""), sizeText(int64(s.sum("staged_bytes", ""))))
	if s.sum("staged_writes", "") > 0 {
		unpublished = on.in(yellow, unpublished)
	}
	return []string{
		quoted(s.MountPoint), quoted(s.Source), on.in(green, s.State), unpublished,
		strconv.Itoa(s.uploads()),
		fmt.Sprintf("%.0f", s.sum("open_handles", "")),
		percent(s.sum("cache_hits_total", ""), s.sum("cache_misses_total", "")),
		fmt.Sprintf("%.0f", s.sum("store_request_seconds_count", "")+s.sum("catalog_request_seconds_count", "")),
		wrong(s.sum("store_request_seconds_count", outcomeError) + s.sum("catalog_request_seconds_count", outcomeError)),
		wrong(s.sum("fuse_operation_seconds_count", outcomeError)),
	}
}

// outcomeError is the label of what failed; a refusal that a rule asks for has another.
const outcomeError = `outcome="error"`

// printMount prints what is to be said of one mount below the table.
func (p *program) printMount(s mountStatus) error {
	if s.State == "dead" {
		p.printf("%q is dead: mount it again, or clear it: %s\n", s.MountPoint, detachCommand(s.MountPoint))
	}
	if store := s.store(); store.Kind == "s3" {
		p.printf("%s\n", storeLine(s.MountPoint, store))
	}
	if disk := s.diskCache(); disk != nil {
		p.printf("%s\n", diskLine(s.MountPoint, *disk))
	}
	list := s.staged()
	if len(list.Local) > 0 {
		p.printf("%s: local, of this mount alone: %s\n", quoted(s.MountPoint), filesText(list.Local))
	}
	if err := p.printPending(s); err != nil {
		return err
	}
	staged := list.Staged
	if len(staged) == 0 {
		return nil
	}
	p.printf("\nNot published in %s:\n", quoted(s.MountPoint))
	shown := staged[:min(len(staged), shownMax)]
	if err := p.printStaged(shown); err != nil {
		return err
	}
	if more := len(staged) - len(shown); more > 0 {
		p.printf("and %d more: lakefs-mount recover %s\n", more, shellQuote(s.MountPoint))
	}
	return nil
}

// shownMax is how many unpublished files of a mount are shown.
const shownMax = 20

// staged are the unpublished files that the mount tells of.
func (s mountStatus) staged() (list stagedList) {
	if len(s.Status) == 0 || json.Unmarshal(s.Status, &list) != nil {
		return stagedList{}
	}
	return list
}

// uploads counts the files that are on their way to the store, seen by nobody yet.
func (s mountStatus) uploads() (n int) {
	for _, w := range s.staged().Staged {
		if w.Uploading || w.State == staging.Publishing {
			n++
		}
	}
	return n
}

// store is what the mount tells of its store.
func (s mountStatus) store() storeStatus {
	var status struct {
		Mount struct {
			Store storeStatus `json:"store"`
		} `json:"mount"`
	}
	if len(s.Status) == 0 || json.Unmarshal(s.Status, &status) != nil {
		return storeStatus{}
	}
	return status.Mount.Store
}

// storeLine says where a lake in S3 lies, and whether its writes are safe there.
func storeLine(mountpoint string, s storeStatus) string {
	line := fmt.Sprintf("%s: S3 at %s", quoted(mountpoint), quoted(s.Endpoint))
	if c := s.Catalog; c != nil {
		line = fmt.Sprintf("%s: Glue in %s at %s, S3 at %s", quoted(mountpoint), quoted(c.Region), quoted(c.Endpoint), quoted(s.Endpoint))
	}
	if c := s.Conditions; c != nil && (c.IfMatch == conditionIgnored || c.IfNoneMatch == conditionIgnored) {
		line += ", which ignores conditions on writes: two writers of one file at one moment can undo one another"
	}
	return line
}

func percent(part, rest float64) string {
	if part+rest == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*part/(part+rest))
}

// quoted is a name that cannot drive a terminal: as it is where it is harmless.
func quoted(s string) string {
	q := strconv.Quote(s)
	if q == `"`+s+`"` && !strings.ContainsAny(s, " ") {
		return s
	}
	return q
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < 3 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[unit])
}
