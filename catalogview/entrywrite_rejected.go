package catalogview

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// RejectedEntry is an entry that was to be written and was refused.
type RejectedEntry struct {
	Path   string    `json:"path"` // "database/table.json"
	Reason string    `json:"reason"`
	At     time.Time `json:"time"`
}

// maxRejected bounds the refusals that are remembered, the latest, and maxReason the
// bytes of one's reason.
const (
	maxRejected = 100
	maxReason   = 2000
)

// rejectedEntries are the refusals since whose time no write of the entry succeeded,
// the latest last.
type rejectedEntries struct {
	mu struct {
		sync.Mutex
		all []RejectedEntry
	}
}

// note takes in how a write of the entry of a table ended. That its caller left is no
// refusal.
func (r *rejectedEntries) note(ctx context.Context, at time.Time, path string, err error) {
	if err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)) {
		return
	}
	path += entrySuffix
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.all = slices.DeleteFunc(r.mu.all, func(e RejectedEntry) bool { return e.Path == path })
	if err == nil {
		return
	}
	if len(r.mu.all) >= maxRejected {
		r.mu.all = slices.Delete(r.mu.all, 0, len(r.mu.all)-maxRejected+1)
	}
	r.mu.all = append(r.mu.all, RejectedEntry{Path: path, Reason: rejection(err), At: at})
}

// rejection is what a refusal says, without the path that stands beside it.
func rejection(err error) string {
	reason := err.Error()
	var invalid *EntryError
	var verdict *VerdictError
	switch {
	case errors.As(err, &invalid):
		reason = invalid.Reason
	case errors.As(err, &verdict):
		reason = verdict.Reason
	}
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}

// of are the refusals of the table at a path, or of those of the database.
func (r *rejectedEntries) of(path string) []RejectedEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []RejectedEntry
	for _, e := range r.mu.all {
		if e.Path == path+entrySuffix || strings.HasPrefix(e.Path, path+"/") {
			all = append(all, e)
		}
	}
	return all
}
