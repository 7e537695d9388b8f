package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

const topLong = `Show what a mount does: throughput, operations and requests with their times, cache,
memory, open and staged files, and jobs. Without MOUNTPOINT it shows each mount that
answers, one after the other by the key tab.

Keys: q or Ctrl-C ends it, p pauses it, + and - change the time between two looks.

Where the output is no terminal, it prints one screen, of what happens between two
looks. --json prints a line of JSON a look instead, until it is ended.`

type topOptions struct {
	once, json bool
	every      time.Duration
}

func (p *program) topCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:               "top [flags] [MOUNTPOINT]",
		Short:             "Watch what a mount does: throughput, times, cache, files, requests",
		Long:              topLong,
		Args:              arguments(0, 1),
		ValidArgsFunction: completeMountPoint,
		RunE: func(cmd *cobra.Command, args []string) error {
			if low, high := 100*time.Millisecond, time.Hour; o.every < low || o.every > high {
				return usagef("--interval %v: give one from %v to %v", o.every, low, high)
			}
			return p.top(cmd.Context(), args, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.once, "once", false, "print one screen, and end")
	f.BoolVar(&o.json, "json", false, "print a line of JSON at each look; with --once, one")
	f.DurationVar(&o.every, "interval", topEvery, "`TIME` between two looks")
	return cmd
}

// watchedMount is a mount and the first look at it.
type watchedMount struct {
	entry tableEntry
	last  look
}

func (p *program) top(ctx context.Context, args []string, o topOptions) error {
	mounts, err := watchedMounts(ctx, args)
	if err != nil {
		return err
	}
	if !o.json && !o.once && p.terminal() && term.IsTerminal(int(os.Stdin.Fd())) {
		return p.topLive(ctx, mounts, o.every)
	}
	for {
		if err := pause.For(ctx, o.every); err != nil {
			return err
		}
		for i := range mounts {
			if err := p.topOnce(ctx, &mounts[i], o.json); err != nil {
				return err
			}
			if !o.json && i < len(mounts)-1 {
				p.printf("\n")
			}
		}
		if o.once || !o.json {
			return nil
		}
	}
}

// watchedMounts are the mount that was named, or those that answer, with a look at each.
func watchedMounts(ctx context.Context, args []string) ([]watchedMount, error) {
	table, err := statusTable(ctx, args)
	if err != nil {
		return nil, err
	}
	if len(table) == 0 {
		return nil, errors.New("no lake is mounted; mount one: lakefs-mount mount SOURCE MOUNTPOINT")
	}
	looked, problems := make([]look, len(table)), make([]error, len(table))
	var asking sync.WaitGroup // several that are stuck keep it waiting no longer than one
	for i, e := range table {
		asking.Go(func() { looked[i], problems[i] = boundedLook(ctx, e) })
	}
	asking.Wait()
	var mounts []watchedMount
	for i, e := range table {
		if problems[i] == nil {
			mounts = append(mounts, watchedMount{e, looked[i]})
		}
	}
	if len(mounts) == 0 {
		return nil, problems[0]
	}
	return mounts, nil
}

// topOnce looks again at a mount, and prints what happened since.
func (p *program) topOnce(ctx context.Context, m *watchedMount, asJSON bool) error {
	now, err := boundedLook(ctx, m.entry)
	if err != nil {
		return err
	}
	r := report(m.entry, m.last, now)
	m.last = now
	if !asJSON {
		p.printf("%s\n", topScreen(r, topState{width: 100, paint: p.paint(), ascii: p.ascii()}))
		return nil
	}
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// topLive shows it on the terminal until a key ends it, or the mount does.
func (p *program) topLive(ctx context.Context, mounts []watchedMount, every time.Duration) error {
	m := &topModel{lookAt: lookAt, state: topState{every: every, paint: p.paint(), ascii: p.ascii()}}
	for _, w := range mounts {
		m.mounts = append(m.mounts, &topMount{entry: w.entry, last: &w.last, report: report(w.entry, w.last, w.last)})
	}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithEnvironment(p.environ)}
	if screen, ok := p.stdoutFile(); ok { // whose size is asked for: what it is wrapped in has none
		options = append(options, tea.WithOutput(screen))
	}
	_, err := tea.NewProgram(m, options...).Run()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("show it: %w", err)
	}
	return m.err
}

// ascii tells whether the locale has no characters but those of ASCII for sure.
func (p *program) ascii() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(p.getenv(name)); value != "" {
			return !strings.Contains(value, "utf-8") && !strings.Contains(value, "utf8")
		}
	}
	return true
}
