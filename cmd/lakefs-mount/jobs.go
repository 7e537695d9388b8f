package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// jobAsk is a line for a control file, which the mount works on as a job: it goes on
// if this program ends.
type jobAsk struct {
	mountpoint string
	control    string                 // the path of the control file
	verb, rest string                 // "VERB --job ID REST"
	what       string                 // it is, for messages: "the repair of …"
	steps      string                 // what the job counts
	next       func(err error) string // what to do when it has failed with the mount's answer; said behind the reason
}

// errInterrupted: the user ended the wait, and not the job.
var errInterrupted = errors.New("interrupted")

// runJob has the mount do it, shows its progress, and returns the job as the mount
// tells of it, also beside an error of the job itself; without an ID where the mount
// was not asked, or does not tell.
func (p *program) runJob(ctx context.Context, a jobAsk) (fs.JobStatus, error) {
	if err := knowsJobs(ctx, a.mountpoint, a.verb); err != nil {
		return fs.JobStatus{}, err
	}
	asked, stop := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
	defer stop()
	id := uuid.NewString()
	line := a.verb + " --job " + id
	if a.rest != "" {
		line += " " + a.rest
	}
	bar := p.newSteps(a.steps)
	err := bar.steps(
		asked,
		func(ctx context.Context) (done, total int64) {
			job, _ := jobOf(ctx, a.mountpoint, id)
			return job.Done, job.Total
		},
		func() error { return longLine(asked, a.mountpoint, a.control, line, publishLimit) },
	)
	bar.clear()
	job, told := jobOf(ctx, a.mountpoint, id)
	switch {
	case err == nil:
		return job, nil
	case asked.Err() != nil && ctx.Err() == nil:
		return job, fmt.Errorf("%s: %w here, and not in the mount, which goes on with it: its outcome is that of the job %q in %q", a.what, errInterrupted, id, a.mountpoint+"/.lakefs/jobs.json")
	case told && strings.Contains(job.Error, strconv.Quote(job.Path)): // it says of what it is
		return job, fmt.Errorf("%s%s", printable(job.Error), a.next(err))
	case told && job.Error != "":
		return job, fmt.Errorf("%s: %s%s", a.what, printable(job.Error), a.next(err))
	}
	return job, fmt.Errorf("%s: %w (the mount's log says why)%s", a.what, bare(err), a.next(err))
}

// knowsJobs refuses a mount that does not tell of jobs.
func knowsJobs(ctx context.Context, mountpoint, verb string) error {
	_, err := readControl(ctx, mountpoint, "jobs.json")
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		version := "an older one"
		if raw, unknown := readControl(ctx, mountpoint, "version"); unknown == nil {
			version = printable(strings.TrimSpace(string(raw)))
		}
		return fmt.Errorf("the mount at %q is of another version (%s), which has no %s: unmount it, and mount it with this one", mountpoint, version, verb)
	case errors.Is(err, iofs.ErrPermission):
		return fmt.Errorf("the mount at %q is another user's: %s is for them, or for root with --allow-other", mountpoint, verb)
	case err != nil:
		return fmt.Errorf("ask the mount at %q: %w", mountpoint, bare(err))
	}
	return nil
}

// jobOf is what the mount tells of a job.
func jobOf(ctx context.Context, mountpoint, id string) (fs.JobStatus, bool) {
	for _, job := range jobsOf(ctx, mountpoint) {
		if job.ID == id {
			return job, true
		}
	}
	return fs.JobStatus{}, false
}

// jobsOf asks a mount for its jobs; none if it does not tell.
func jobsOf(ctx context.Context, mountpoint string) []fs.JobStatus {
	raw, err := readControl(ctx, mountpoint, "jobs.json")
	var all struct {
		Jobs []fs.JobStatus `json:"jobs"`
	}
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all.Jobs
}

// awaitJobs waits until the jobs that a mount runs have ended, for as long as a drain may
// take, and shows how far they are. Those that begin meanwhile are not waited for.
func (p *program) awaitJobs(ctx context.Context, mountpoint string) {
	running := make(map[string]bool)
	for _, job := range jobsOf(ctx, mountpoint) {
		if job.Ended == nil {
			running[job.ID] = true
			p.errorf("waits for: %s of %s\n", job.Kind, quoted(job.Path))
		}
	}
	if len(running) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fs.DrainLimit)
	defer cancel()
	look := func(ctx context.Context) (left int, done, total int64) {
		for _, job := range jobsOf(ctx, mountpoint) {
			if running[job.ID] {
				done, total = done+job.Done, total+job.Total
				if job.Ended == nil {
					left++
				}
			}
		}
		return left, done, total
	}
	bar := p.newSteps("steps")
	defer bar.clear()
	counted := func(ctx context.Context) (done, total int64) {
		_, done, total = look(ctx)
		return done, total
	}
	_ = bar.steps(ctx, counted, func() error { // nothing fails: the wait is over, or was too long
		for left := 1; left > 0 && pause.For(ctx, jobsEvery) == nil; {
			left, _, _ = look(ctx)
		}
		return nil
	})
}

// jobsEvery is how often a wait for jobs looks whether they run.
const jobsEvery = 50 * time.Millisecond
