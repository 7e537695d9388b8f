package fs

import (
	"sync"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// maxVerified bounds what is remembered of verified versions.
const maxVerified = 20_000

// verified remembers which versions the store itself has confirmed lately (by
// the answer to a read or a write, not by a listing, which some stores make from
// old data). An open of such a version asks for nothing. Safe for concurrent use.
type verified struct {
	ttl time.Duration
	now func() time.Time

	mu sync.Mutex
	at map[objectstore.Location]confirmation
}

type confirmation struct {
	etag string
	size int64
	at   time.Time
}

func newVerified(ttl time.Duration) *verified {
	return &verified{ttl: ttl, now: time.Now, at: make(map[objectstore.Location]confirmation)}
}

// note: o was the version at its location just now.
func (v *verified) note(o objectstore.Object) {
	if v.ttl <= 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.at) >= maxVerified {
		v.makeRoom()
	}
	v.at[o.Location] = confirmation{o.ETag, o.Size, v.now()}
}

// makeRoom drops what is too old, else everything: it costs requests, no more.
func (v *verified) makeRoom() {
	now := v.now()
	for loc, c := range v.at {
		if now.Sub(c.at) >= v.ttl {
			delete(v.at, loc)
		}
	}
	if len(v.at) >= maxVerified {
		clear(v.at)
	}
}

// has reports whether o was confirmed within the TTL.
func (v *verified) has(o objectstore.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	c, ok := v.at[o.Location]
	return ok && c.etag == o.ETag && c.size == o.Size && v.now().Sub(c.at) < v.ttl
}

// drop forgets what was confirmed of loc.
func (v *verified) drop(loc objectstore.Location) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.at, loc)
}
