package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

const recoverLong = `Shows the files that were written and not published: their writer was killed,
their publish failed, or the mount ended before they were complete. Nothing of
it is published or removed by itself. A rename in a bucket that is half done
(state renaming) is shown too: --publish finishes it, or forgets it where the
copy was never made; --abort forgets it, and leaves what is at either name.
Files that are published together, all or none, have a line of their own (state
moving, moved or undoing) until it is done: --publish goes on with it, --abort takes
back what is published; the files can be dealt with one by one afterwards. Where they
overwrite others (state clearing while those are removed, and settling if not all could
be published then), --abort removes nothing more, and what is published stays.

Files that live in a mount alone (--local-names, and the staging trees of engines)
wait for nobody, and are listed with --all or --json only. A rename publishes them.

Of a running mount name the MOUNTPOINT. After a crash name SOURCE and MOUNTPOINT
as they were (and --state-dir, if it was given), or mount again first.

--save copies the bytes into a directory. Of a file whose older version was
replaced or removed by others meanwhile it saves what was written, with zeros in
the place of that version's bytes, as NAME.partial, and prints the ranges of what
was written.

--publish and --abort take write ids, their first eight digits, or all. One of
--publish, --abort and --save at a time.`

// stagedWrite is one unpublished file, or a rename that is half done.
type stagedWrite = fs.WriteStatus

// nameOf is what w is called in messages, quoted.
func nameOf(w stagedWrite) string {
	if w.Renames() {
		return fmt.Sprintf("the rename of %q to %q", w.Source, w.Target)
	}
	if w.Together() {
		return fmt.Sprintf("%s together below %q", togetherText(w), w.Path)
	}
	return strconv.Quote(w.Path)
}

// togetherText says what files that are published together do.
func togetherText(w stagedWrite) string {
	text := countOf(w.Files, "file")
	if w.Removes > 0 {
		text += " over " + strconv.Itoa(w.Removes)
	}
	return text
}

// stagedList is what there is of them.
type stagedList struct {
	Staged   []stagedWrite `json:"staged"`
	Local    []stagedWrite `json:"local"`    // files of the mount alone, which wait for nobody
	Aborting int           `json:"aborting"` // dropped files whose uploads are yet to be freed in the store
	Dir      string        `json:"-"`        // where was looked; "": the mount told
}

// all has the files of the mount alone too.
func (l stagedList) all() []stagedWrite { return slices.Concat(l.Staged, l.Local) }

// stagedWrites is where unpublished files are: a running mount, or the state
// directory of one that ended.
type stagedWrites interface {
	list(ctx context.Context) (stagedList, error)
	publish(ctx context.Context, w stagedWrite) error
	abort(ctx context.Context, w stagedWrite) error
	// save copies the bytes into dir and replaces nothing, as commit.Save.
	save(ctx context.Context, w stagedWrite, dir string) (commit.Saved, error)
	// uploaded is how many bytes of w the store has by now.
	uploaded(ctx context.Context, w stagedWrite) int64
	io.Closer
}

type recoverOptions struct {
	publish, abort []string
	save           string
	all, json      bool
}

func (p *program) recoverCommand() *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover [flags] [SOURCE] MOUNTPOINT",
		Short: "Show, publish, save or drop files that were not published",
		Long:  recoverLong,
		Args:  arguments(1, 2),

		ValidArgsFunction: completeMountPoint,
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.publish, "publish", nil, "publish these `IDs`, or all")
	f.StringSliceVar(&o.abort, "abort", nil, "drop these `IDs` and their bytes, or all")
	f.StringVar(&o.save, "save", "", "copy all of them into this `DIR`; they stay staged")
	_ = cmd.MarkFlagDirname("save") // the flag is there
	f.BoolVar(&o.all, "all", false, "files that live in the mount alone too, in the list and where all are meant")
	f.BoolVar(&o.json, "json", false, "list as JSON")
	p.addSettings(cmd, recoverSettings()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(f); err != nil {
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
	ids, task := o.task(writes)
	if task.do == nil {
		return p.listStaged(all, o)
	}
	chosen, err := choose(all, ids, o.all)
	if err != nil {
		return err
	}
	if o.save != "" {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(w stagedWrite) bool {
			return w.Renames() || w.Together() // they have no bytes here
		})
	}
	return p.doEach(ctx, chosen, task)
}

// recoverTask is what recover does to each of the writes that were chosen.
type recoverTask struct {
	do    func(ctx context.Context, w stagedWrite) (done outcome, err error)
	moved func(ctx context.Context, w stagedWrite) int64 // bytes, while do is under way
}

// outcome is what is printed ahead of a write's name, and behind it.
type outcome struct{ done, note string }

// task is what the options ask for, and of which writes; it has no do where they
// ask for a list.
// check refuses what is not for a guess, and makes the directory of --save.
func (o recoverOptions) check(f *pflag.FlagSet) error {
	if err := oneOf(f, "publish", "abort", "save"); err != nil {
		return err
	}
	for name, given := range map[string]bool{"publish": len(o.publish) > 0, "abort": len(o.abort) > 0, "save": o.save != ""} {
		if f.Changed(name) && !given { // a variable of a script that is empty
			return usagef("--%s: nothing is named", name)
		}
	}
	if o.save == "" {
		return nil
	}
	if err := os.MkdirAll(o.save, 0o700); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

func (o recoverOptions) task(writes stagedWrites) (ids []string, t recoverTask) {
	switch {
	case o.save != "":
		moved := func(_ context.Context, w stagedWrite) int64 {
			base := path.Base(w.Path)
			return max(sizeOf(filepath.Join(o.save, base)), sizeOf(filepath.Join(o.save, commit.PartialName(base))))
		}
		return []string{allIDs}, recoverTask{
			do: func(ctx context.Context, w stagedWrite) (outcome, error) {
				saved, err := writes.save(ctx, w, o.save)
				return savedAs(saved, w.Open), err
			},
			moved: moved,
		}
	case len(o.publish) > 0:
		return o.publish, recoverTask{
			do: func(ctx context.Context, w stagedWrite) (outcome, error) {
				if w.Hold == staging.Local {
					return outcome{}, fmt.Errorf("%q is a file of the mount alone: to publish it, mount the lake and rename it to a name that is none of --local-names, outside of staging trees; or --save", w.Path)
				}
				done := outcome{done: "published"}
				if w.Renames() {
					done.done = "settled" // finished, or it had not begun
				}
				return done, writes.publish(ctx, w)
			},
			moved: writes.uploaded,
		}
	case len(o.abort) > 0:
		return o.abort, recoverTask{
			do: func(ctx context.Context, w stagedWrite) (outcome, error) {
				done := outcome{done: "dropped"}
				if w.Together() {
					done.done = "taken back"
				}
				if w.Removes > 0 {
					done.done = "given up"
				}
				return done, writes.abort(ctx, w)
			},
			moved: func(context.Context, stagedWrite) int64 { return 0 },
		}
	}
	return nil, recoverTask{}
}

// savedAs says what was saved, of a file that a program may have open yet.
func savedAs(s commit.Saved, open bool) outcome {
	var note string
	if open {
		note = ", which is still being written: this is as far as it was"
	}
	if !s.Partial {
		return outcome{"saved as " + quoted(s.Path) + ":", note}
	}
	ranges := make([]string, len(s.Own))
	for i, r := range s.Own {
		ranges[i] = fmt.Sprintf("%d-%d", r.From, r.To-1)
	}
	return outcome{
		"saved in part as " + quoted(s.Path) + ":",
		fmt.Sprintf("%s; the version that it changed is gone: there are the bytes %s (what was written, in blocks of 128 KiB), the rest of the %d is zeros",
			note, strings.Join(ranges, ", "), s.Size),
	}
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0 // it is not there yet
	}
	return info.Size()
}

// doEach does a task to each write, whatever comes of the others.
func (p *program) doEach(ctx context.Context, chosen []stagedWrite, t recoverTask) error {
	var total int64
	for _, w := range chosen {
		total += w.Size
	}
	bar := p.newProgress(total)
	defer bar.clear()
	var problems []error
	for _, w := range chosen {
		var done outcome
		err := bar.follow(
			ctx, w.Size,
			func(ctx context.Context) int64 { return t.moved(ctx, w) },
			func() (err error) { done, err = t.do(ctx, w); return err },
		)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", w.ID, err))
			continue
		}
		bar.clear()
		p.printf("%s %s (%s)%s\n", done.done, nameOf(w), w.ID, done.note)
	}
	return errors.Join(problems...)
}

// allIDs is every write, in the place of ids.
const allIDs = "all"

// choose finds the writes that ids name. All of them are those that wait for
// somebody, and only withLocal the others.
func choose(list stagedList, ids []string, withLocal bool) ([]stagedWrite, error) {
	all := list.all()
	if slices.Equal(ids, []string{allIDs}) {
		if !withLocal {
			return list.Staged, nil
		}
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

func (p *program) listStaged(all stagedList, o recoverOptions) error {
	if o.json {
		return p.printJSON(all.all())
	}
	list := all.Staged
	if o.all {
		list = all.all()
	}
	if len(list) == 0 {
		p.printf("Nothing is unpublished.\n")
		if all.Dir != "" && len(all.Local) == 0 {
			p.printf("No mount has left anything in %q: name SOURCE, MOUNTPOINT and --state-dir as they were when it was mounted.\n", all.Dir)
		}
	} else if err := p.printStaged(list); err != nil {
		return err
	}
	if len(all.Local) > 0 && !o.all {
		p.printf("Local: %s, of the mount alone: --all lists them.\n", filesText(all.Local))
	}
	if all.Aborting > 0 {
		p.printf("Of %s that %s dropped the store has parts yet: a mount frees them.\n", countOf(all.Aborting, "file"), wasWere(all.Aborting))
	}
	return nil
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// filesText is how many there are, and of how many bytes.
func filesText(all []stagedWrite) string {
	var total int64
	for _, w := range all {
		total += w.Size
	}
	return countOf(len(all), "file") + ", " + sizeText(total)
}

// printStaged prints a line for each write.
func (p *program) printStaged(all []stagedWrite) error {
	var t textTable
	t.heading(p.paint(), "ID", "STATE", "SIZE", "UPLOADED", "AGE", "PATH", "LAST ERROR")
	for _, s := range all {
		state, reason, name := string(s.State), "-", strconv.Quote(s.Path)
		if s.Hold != staging.Unheld {
			state += ", " + string(s.Hold)
		}
		if s.Open {
			state += ", open"
		}
		if s.Error != "" {
			reason = strconv.Quote(s.Error)
		}
		if s.Renames() {
			name = fmt.Sprintf("%q → %q", s.Source, s.Target)
		}
		if s.Together() {
			name = fmt.Sprintf("%q (%s)", s.Path, togetherText(s))
		}
		age := time.Since(s.Changed).Truncate(time.Second)
		t.row(s.ID, state, sizeText(s.Size), sizeText(s.Uploaded), age.String(), name, reason)
	}
	return t.write(p.stdout)
}
