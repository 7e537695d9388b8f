package fs

import (
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// keptJobs is how many jobs that ended are told of, and keptResults of how many bytes
// their results are: an older one is told of without its result. The last keeps its own.
const (
	keptJobs    = 32
	keptResults = 4 << 20
)

// JobStatus is one long piece of work in jobs.json: what a line of a control file
// began. Done and Total count steps (Total 0: how many there will be is not known).
type JobStatus struct {
	ID      string          `json:"id"` // given by who asked for it, or made
	Kind    string          `json:"kind"`
	Path    string          `json:"path"`
	Done    int64           `json:"done"`
	Total   int64           `json:"total"`
	Started time.Time       `json:"started"`
	Ended   *time.Time      `json:"ended,omitempty"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"` // of a kind that has one
}

// jobs are those that run, and the last that ended. The zero value is none. Its
// methods may be called concurrently.
type jobs struct {
	mu  sync.Mutex
	all []*job // oldest first
}

// job is one of them.
type job struct {
	jobs   *jobs
	status JobStatus // jobs.mu guards it
}

// begin notes a job.
func (j *jobs) begin(id, kind, path string) *job {
	one := &job{jobs: j, status: JobStatus{ID: id, Kind: kind, Path: path, Started: time.Now()}}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, one)
	return one
}

// progress notes how far it is.
func (j *job) progress(done, total int64) {
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	j.status.Done, j.status.Total = max(j.status.Done, done), total
}

// end notes what came of it. result is told as JSON; nil: nothing.
func (j *job) end(result any, err error) {
	raw, problem := json.Marshal(result)
	j.jobs.mu.Lock()
	defer j.jobs.mu.Unlock()
	now := time.Now()
	j.status.Ended = &now
	if err != nil {
		j.status.Error = err.Error()
	}
	if result != nil && problem == nil {
		j.status.Result = raw
	}
	j.jobs.prune()
}

// prune forgets what keptJobs and keptResults have no room for. mu is held.
func (j *jobs) prune() {
	ended, size := 0, 0
	for i := len(j.all) - 1; i >= 0; i-- {
		status := &j.all[i].status
		if status.Ended == nil {
			continue
		}
		size += len(status.Result)
		switch ended++; {
		case ended > keptJobs:
			j.all = slices.Delete(j.all, i, i+1)
		case ended > 1 && size > keptResults:
			status.Result = nil
		}
	}
}

// json is jobs.json.
func (j *jobs) json() ([]byte, error) {
	return indentJSON(struct {
		Jobs []JobStatus `json:"jobs"`
	}{j.list()})
}

// list returns them, oldest first.
func (j *jobs) list() []JobStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]JobStatus, len(j.all))
	for i, one := range j.all {
		all[i] = one.status
	}
	return all
}
