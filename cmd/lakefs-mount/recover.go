package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const recoverLong = `Shows the files that were written and not published: their writer was killed,
their publish failed, or the mount ended before they were complete. Nothing of
it is published or removed by itself.

Of a running mount name the MOUNTPOINT. After a crash name SOURCE and MOUNTPOINT
as they were (and --state-dir, if it was given), or mount again first.

--publish and --abort take write ids, their first eight digits, or all. One of
--publish, --abort and --save at a time.`

// stagedWrite is one unpublished file, as status.json has it.
type stagedWrite struct {
	ID      string    `json:"write_id"`
	Path    string    `json:"path"`
	State   string    `json:"state"`
	Open    bool      `json:"open"`
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	Error   string    `json:"error,omitempty"`
}

// stagedWrites is where unpublished files are: a running mount, or the state
// directory of one that ended.
type stagedWrites interface {
	list(ctx context.Context) ([]stagedWrite, error)
	publish(ctx context.Context, w stagedWrite) error
	abort(ctx context.Context, w stagedWrite) error
	// save copies the bytes into dir, replaces nothing, and returns the path.
	save(ctx context.Context, w stagedWrite, dir string) (string, error)
	io.Closer
}

type recoverOptions struct {
	publish, abort []string
	save           string
	json           bool
}

func (p *program) recoverCommand() *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover [flags] [SOURCE] MOUNTPOINT",
		Short: "Show, publish, save or drop files that were not published",
		Long:  recoverLong,
		Args:  arguments(1, 2),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.publish, "publish", nil, "publish these `IDs`, or all")
	f.StringSliceVar(&o.abort, "abort", nil, "drop these `IDs` and their bytes, or all")
	f.StringVar(&o.save, "save", "", "copy all of them into this `DIR`; they stay staged")
	f.BoolVar(&o.json, "json", false, "list as JSON")
	settings.AddFlags(f, recoverSettings()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf(f, "publish", "abort", "save"); err != nil {
			return err
		}
		writes, err := p.openStaged(cmd.Context(), args, settings.FromFlags(f))
		if err != nil {
			return err
		}
		err = p.recover(cmd.Context(), writes, o)
		return errors.Join(err, writes.Close())
	}
	return cmd
}

// recoverSettings are those that say where the writes are kept, and how one of
// them is published.
func recoverSettings() []string {
	return slices.Concat(settings.S3Names(), []string{
		"glue-endpoint-url", "catalog-writes", "config", "io-timeout", "state-dir", "allow-location", "check-format",
	})
}

// oneOf refuses more than one of the flags: in which order they act is not for a
// guess where one of them drops bytes.
func oneOf(flags *pflag.FlagSet, names ...string) error {
	var given []string
	for _, name := range names {
		if flags.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return usagef("%s: give one of them at a time", strings.Join(given, " and "))
	}
	return nil
}

// openStaged finds the running mount, or opens its state directory.
func (p *program) openStaged(ctx context.Context, args []string, given settings.Given) (stagedWrites, error) {
	mountpoint, err := mountPoint(args[len(args)-1])
	if err != nil {
		return nil, err
	}
	e, found, err := mountedAt(mountpoint)
	if err != nil {
		return nil, err
	}
	if found && e.ours() && answers(ctx, mountpoint) {
		return runningWrites{mountpoint}, nil
	}
	if len(args) == 1 {
		return nil, fmt.Errorf("%q: no lake is mounted there; name its SOURCE too: lakefs-mount recover SOURCE %s", mountpoint, shellQuote(mountpoint))
	}
	resolved, err := settings.Resolve(given, p.environ)
	if err != nil {
		return nil, usageError{err}
	}
	r := &request{mountpoint: mountpoint, settings: resolved}
	if err := p.setSource(ctx, r, args[0]); err != nil {
		return nil, err
	}
	return p.keptWrites(r) //nolint:contextcheck // opening a staging directory waits for nothing
}

func (p *program) recover(ctx context.Context, writes stagedWrites, o recoverOptions) error {
	all, err := writes.list(ctx)
	if err != nil {
		return err
	}
	publish, err := choose(all, o.publish)
	if err != nil {
		return err
	}
	abort, err := choose(all, o.abort)
	if err != nil {
		return err
	}
	if len(o.publish) == 0 && len(o.abort) == 0 && o.save == "" {
		return p.listStaged(all, o.json)
	}
	var problems []error
	done := func(verb string, w stagedWrite, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", w.ID, err))
			return
		}
		p.printf("%s %q (%s)\n", verb, w.Path, w.ID)
	}
	if o.save != "" {
		for _, w := range all {
			to, err := writes.save(ctx, w, o.save)
			done("saved as "+quoted(to)+":", w, err)
		}
	}
	for _, w := range publish {
		done("published", w, writes.publish(ctx, w))
	}
	for _, w := range abort {
		done("dropped", w, writes.abort(ctx, w))
	}
	return errors.Join(problems...)
}

// choose finds the writes that ids name.
func choose(all []stagedWrite, ids []string) ([]stagedWrite, error) {
	if slices.Equal(ids, []string{"all"}) {
		return all, nil
	}
	var chosen []stagedWrite
	for _, id := range ids {
		i := slices.IndexFunc(all, func(w stagedWrite) bool { return w.ID == id || len(id) == 8 && w.ID[:8] == id })
		if i < 0 {
			return nil, fmt.Errorf("no unpublished file has the id %q; list them without --publish and --abort", id)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func (p *program) listStaged(all []stagedWrite, asJSON bool) error {
	if asJSON {
		return p.printJSON(all)
	}
	if len(all) == 0 {
		p.printf("Nothing is unpublished.\n")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tSTATE\tSIZE\tAGE\tPATH\tLAST ERROR") // Flush tells
	for _, s := range all {
		state, reason := s.State, "-"
		if s.Open {
			state += ", open"
		}
		if s.Error != "" {
			reason = fmt.Sprintf("%q", s.Error)
		}
		age := time.Since(s.Changed).Truncate(time.Second)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%q\t%s\n", s.ID, state, sizeText(s.Size), age, s.Path, reason)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return nil
}

// runningWrites are those of the mount at a mount point.
type runningWrites struct{ mountpoint string }

func (r runningWrites) list(ctx context.Context) ([]stagedWrite, error) {
	return stagedIn(ctx, r.mountpoint)
}

// stagedIn lists the unpublished files of a running mount.
func stagedIn(ctx context.Context, mountpoint string) ([]stagedWrite, error) {
	raw, err := readControl(ctx, mountpoint, "status.json")
	if err != nil {
		return nil, fmt.Errorf("ask the mount at %q: %w", mountpoint, err)
	}
	var status struct {
		Staged []stagedWrite `json:"staged"`
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return nil, fmt.Errorf("ask the mount at %q: %w", mountpoint, err)
	}
	for _, w := range status.Staged {
		if len(w.ID) < 8 {
			return nil, fmt.Errorf("ask the mount at %q: a write without an id", mountpoint)
		}
	}
	return status.Staged, nil
}

func (r runningWrites) publish(ctx context.Context, w stagedWrite) error {
	err := writeControl(ctx, r.mountpoint, "recover publish "+w.ID, drainTimeout+answerTimeout)
	if err == nil {
		return nil
	}
	// The control file can answer an errno alone; the record says why, if it is there.
	var answer syscall.Errno
	all, statusErr := stagedIn(ctx, r.mountpoint)
	i := slices.IndexFunc(all, func(now stagedWrite) bool { return now.ID == w.ID })
	switch {
	case statusErr != nil || !errors.As(err, &answer):
	case i >= 0 && all[i].Error != "":
		err = fmt.Errorf("%w: %s", err, all[i].Error)
	case i < 0 && !errors.Is(answer, iofs.ErrNotExist): // it was not gone before
		return fmt.Errorf("%q is published, but its partition is not registered in the catalog: %w"+
			" (the mount's log says why; it is tried again while mounted, and by the next publish into it)", w.Path, answer)
	}
	return fmt.Errorf("publish %q: %w", w.Path, err)
}

func (r runningWrites) abort(ctx context.Context, w stagedWrite) error {
	if err := writeControl(ctx, r.mountpoint, "recover abort "+w.ID, answerTimeout); err != nil {
		return fmt.Errorf("abort %q: %w", w.Path, err)
	}
	return nil
}

func (r runningWrites) save(_ context.Context, w stagedWrite, dir string) (string, error) {
	from := filepath.Join(r.mountpoint, ".lakefs", "staged", "~"+w.ID[:8])
	base := path.Base(w.Path)
	if w.Path == "" {
		base = w.ID // its record is damaged
	}
	to := filepath.Join(dir, base)
	if err := copyNew(from, to); err != nil {
		return "", fmt.Errorf("save %q: %w", w.Path, err)
	}
	return to, nil
}

func (r runningWrites) Close() error { return nil }

// copyNew copies a file durably to a name that is not there.
func copyNew(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Sync(), out.Close())
	if err != nil {
		_ = os.Remove(to) // a part of it would look like the whole
	}
	return err
}
