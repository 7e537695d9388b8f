package commit

import (
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// metaBehind is the user metadata key of an append: the write ids of the
// versions that it was put behind, the last one first. An append whose answer was
// lost, and that another's append went behind before we looked, is seen there; it
// would be appended twice else.
const metaBehind = "lakefs-write-behind"

// maxBehind bounds the list: metadata of 2 KiB is what S3 takes.
const maxBehind = 16

// lineage is the write ids that o is told to consist of, the last one first.
func lineage(o *objectstore.Object) []string {
	if o == nil {
		return nil
	}
	var ids []string
	if id := o.Meta[objectstore.MetaWriteID]; id != "" {
		ids = append(ids, id)
	}
	if behind := o.Meta[metaBehind]; behind != "" {
		ids = append(ids, strings.Split(behind, ",")...)
	}
	return ids[:min(len(ids), maxBehind)]
}

// isBehindOurs tells whether obj is another's append behind the version that the
// append r was to make. What r began as may have r's id in its lineage too: this
// file's earlier versions.
func isBehindOurs(obj objectstore.Object, r staging.Record) bool {
	return r.Append && countOf(lineage(&obj), r.ID) > countOf(lineage(r.Base), r.ID)
}

func countOf(ids []string, id string) int {
	n := 0
	for _, i := range ids {
		if i == id {
			n++
		}
	}
	return n
}
