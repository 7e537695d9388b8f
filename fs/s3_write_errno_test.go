package fs_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// TestS3ErrnoOfAPublish: what the store says of a PUT, and what the close says. In
// each case the bytes are kept, and published when they are written once more.
func TestS3ErrnoOfAPublish(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, nil, "--io-timeout=1s")
	warm(t, l)
	for name, c := range map[string]struct {
		fault faulty.Fault
		want  syscall.Errno
	}{
		"denied":      {answers(403, "AccessDenied"), syscall.EACCES},
		"signature":   {answers(403, "SignatureDoesNotMatch"), syscall.EACCES},
		"nobucket":    {answers(404, "NoSuchBucket"), syscall.EIO},
		"quota":       {answers(403, "QuotaExceeded"), syscall.ENOSPC},
		"full":        {answers(507, "InsufficientStorage"), syscall.ENOSPC},
		"large":       {answers(400, "EntityTooLarge"), syscall.EFBIG},
		"invalid":     {answers(400, "InvalidArgument"), syscall.EIO},
		"slow":        {answers(503, "SlowDown"), syscall.EIO},
		"page":        {faulty.Status{Code: 502, HTML: true}, syscall.EIO},
		"conflict":    {answers(409, "ConditionalRequestConflict"), syscall.EIO},
		"digest":      {answers(400, "BadDigest"), syscall.EIO},
		"reset":       {faulty.Refuse{}, syscall.EIO},
		"broken":      {faulty.LoseAnswerBefore{}, syscall.EIO},
		"parent":      {answers(409, "ObjectParentIsFile"), syscall.EIO},
		"maintenance": {answers(405, "MethodNotAllowed"), syscall.EIO},
	} {
		rule := l.Proxy.Add(onFile(l, "PutObject", name, c.fault))
		wantErrno(t, name, writeErr(l, csvDir+"/"+name, creat, "bytes\n", nil), c.want)
		wantAbsent(t, l, csvDir+"/"+name)
		var kept []string
		for _, n := range staged(t, l, csvDir) {
			if strings.HasPrefix(n, name+"~") {
				kept = append(kept, n)
			}
		}
		if len(kept) != 1 {
			t.Errorf("%s: kept are %q, want one", name, kept)
		} else {
			wantContent(t, l, csvDir+"/.lakefs/staged/"+kept[0], "bytes\n")
		}
		rule.Remove()
		write(t, l, csvDir+"/"+name, "again\n")
		wantStore(t, l, csvDir+"/"+name, "again\n")
	}
}

// TestS3FailuresOfAMomentAreNobodysError: whatever is wrong with the first PUTs.
func TestS3FailuresOfAMomentAreNobodysError(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"old": "old\n"}, "--io-timeout=20s")
	warm(t, l)
	content := numbered('m', 3<<20)
	for name, c := range map[string]struct {
		fault faulty.Fault
		times int
	}{
		"slow":     {faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown"}, 3},
		"internal": {answers(500, "InternalError"), 3},
		"page":     {faulty.Status{Code: http.StatusBadGateway, HTML: true}, 3},
		"timeout":  {answers(400, "RequestTimeout"), 3},
		"conflict": {answers(409, "ConditionalRequestConflict"), 3},
		"digest":   {answers(400, "BadDigest"), 1},
		"reset":    {faulty.Refuse{}, 3},
		"broken":   {faulty.LoseAnswerBefore{}, 3},
		"old":      {faulty.LoseAnswerBefore{}, 3},
	} {
		rule := onFile(l, "PutObject", name, c.fault)
		rule.Times = c.times
		met := l.Proxy.Add(rule)
		write(t, l, csvDir+"/"+name, content)
		if met.Hits() != c.times {
			t.Errorf("%s: %d PUTs met the fault, want %d", name, met.Hits(), c.times)
		}
		wantStore(t, l, csvDir+"/"+name, content)
	}
	if strings.Contains(l.Log(), "level=ERROR") {
		t.Error("errors were logged")
	}
	if ids := spools(t, l); len(ids) > 0 {
		t.Errorf("the staging directory has %q", ids)
	}
}
