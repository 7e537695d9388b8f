package commit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// Meta is the user metadata that travels with the object of a record: its write id,
// the attributes as the record has them, and behind which versions it was appended.
func Meta(r staging.Record) map[string]string {
	meta := map[string]string{
		objectstore.MetaWriteID: r.ID,
		objectstore.MetaMode:    strconv.FormatUint(uint64(r.Mode&0o7777), 8),
		objectstore.MetaUID:     strconv.FormatUint(uint64(r.UID), 10),
		objectstore.MetaGID:     strconv.FormatUint(uint64(r.GID), 10),
	}
	if behind := lineage(r.Base); r.Append && len(behind) > 0 {
		meta[metaBehind] = strings.Join(behind, ",")
	}
	if r.MTimeSet {
		meta[objectstore.MetaMTime] = formatTime(r.MTime)
	}
	return meta
}

// formatTime is t in seconds since 1970, with nine decimals if it has a fraction.
func formatTime(t time.Time) string {
	sec, nsec := t.Unix(), t.Nanosecond()
	sign := ""
	if sec < 0 {
		sign, sec = "-", -sec
		if nsec > 0 {
			sec, nsec = sec-1, 1e9-nsec
		}
	}
	if nsec == 0 {
		return fmt.Sprintf("%s%d", sign, sec)
	}
	return fmt.Sprintf("%s%d.%09d", sign, sec, nsec)
}
