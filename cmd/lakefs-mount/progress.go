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

// progress shows on a terminal how far a long command is, in bytes. Where the
// errors do not go to a terminal it does nothing.
type progress struct {
	bar  *progressbar.ProgressBar // nil: nobody would see it
	done int64                    // bytes of what was done before
}

// newProgress is for work on so many bytes in all.
func (p *program) newProgress(total int64) *progress {
	if f, ok := p.stderr.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) || total == 0 {
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
				g.show(g.done + min(moved(ctx), size))
			case <-ctx.Done():
				return
			}
		}
	})
	err := work()
	stop()
	watching.Wait()
	g.done += size
	g.show(g.done)
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
