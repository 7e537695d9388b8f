package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressEvery is how often a bar looks how far its work is.
const progressEvery = 250 * time.Millisecond

// progress shows on a terminal how far a long command is, in bytes or in steps. Where
// the errors do not go to a terminal it does nothing.
type progress struct {
	bar  *progressbar.ProgressBar // nil: nobody would see it
	done int64                    // bytes of what was done before
}

// onTerminal tells whether somebody sees a bar.
func (p *program) onTerminal() bool {
	f, ok := p.stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// newSteps is for work in steps (what they are: "files"), of which it is not known yet
// how many there will be: until then it shows how many are done, and how fast.
func (p *program) newSteps(steps string) *progress {
	if !p.onTerminal() {
		return &progress{}
	}
	bar := progressbar.NewOptions64(
		-1, progressbar.OptionSetWriter(p.stderr), progressbar.OptionSetDescription(steps), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString(steps), progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(progressEvery/4), progressbar.OptionClearOnFinish(), progressbar.OptionSetSpinnerChangeInterval(0),
	)
	_ = bar.RenderBlank() // a terminal that is gone stops nothing
	return &progress{bar: bar}
}

// newProgress is for work on so many bytes in all.
func (p *program) newProgress(total int64) *progress {
	if !p.onTerminal() || total == 0 {
		return &progress{}
	}
	bar := progressbar.NewOptions64(
		total, progressbar.OptionSetWriter(p.stderr), progressbar.OptionShowBytes(true), progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(progressEvery/4), progressbar.OptionClearOnFinish(),
	)
	_ = bar.RenderBlank() // a terminal that is gone stops nothing
	return &progress{bar: bar}
}

// follow does one piece of the work, of size bytes; meanwhile moved says how many
// of them are done.
func (g *progress) follow(ctx context.Context, size int64, moved func(context.Context) int64, work func() error) error {
	err := g.during(ctx, func(ctx context.Context) { g.show(g.done + min(moved(ctx), size)) }, work)
	if g.bar != nil {
		g.done += size
		g.show(g.done)
	}
	return err
}

// steps does all of the work; meanwhile counted says how many steps are done, and of
// how many (0: not known).
func (g *progress) steps(ctx context.Context, counted func(context.Context) (done, total int64), work func() error) error {
	return g.during(ctx, func(ctx context.Context) {
		done, total := counted(ctx)
		if total > 0 && total != g.bar.GetMax64() {
			g.bar.ChangeMax64(total)
		}
		g.show(done)
	}, work)
}

// during calls look again and again while work is done, where somebody sees the bar.
func (g *progress) during(ctx context.Context, look func(context.Context), work func() error) error {
	if g.bar == nil {
		return work()
	}
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				look(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	err := work()
	stop()
	watching.Wait()
	return err
}

func (g *progress) show(n int64) {
	_ = g.bar.Set64(n) // as above
}

// clear takes the bar off the line, for a message or for good.
func (g *progress) clear() {
	if g.bar != nil {
		_ = g.bar.Clear() // as above
	}
}
