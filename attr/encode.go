package attr

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// entry is one value of the store. As bytes: format 1, flags, the ETag's length
// and bytes, then the fields whose flag is set as varints, in the flags' order.
type entry struct {
	etag string
	Attributes
}

const (
	format1 = 1

	hasMode = 1 << iota >> 1
	hasUID
	hasGID
	hasMTime
	isMade
	allFlags = hasMode | hasUID | hasGID | hasMTime | isMade
)

var errEncoding = errors.New("attributes: bad encoding")

func encode(e entry) []byte {
	out := append(make([]byte, 0, 24+len(e.etag)), format1, 0)
	out = binary.AppendUvarint(out, uint64(len(e.etag)))
	out = append(out, e.etag...)
	var flags byte
	add := func(v *uint32, flag byte) {
		if v != nil {
			flags |= flag
			out = binary.AppendUvarint(out, uint64(*v))
		}
	}
	add(e.Mode, hasMode)
	add(e.UID, hasUID)
	add(e.GID, hasGID)
	if e.MTime != nil {
		flags |= hasMTime
		out = binary.AppendVarint(out, e.MTime.Unix())
		out = binary.AppendUvarint(out, uint64(e.MTime.Nanosecond()))
	}
	if e.Made {
		flags |= isMade
	}
	out[1] = flags
	return out
}

// decode is strict: what encode does not write is errEncoding.
func decode(b []byte) (entry, error) {
	if len(b) < 3 || b[0] != format1 || b[1]&^allFlags != 0 {
		return entry{}, errEncoding
	}
	flags := b[1]
	d := decoder{rest: b[2:]}
	e := entry{etag: d.text()}
	e.Mode = d.optional(flags & hasMode)
	e.UID = d.optional(flags & hasUID)
	e.GID = d.optional(flags & hasGID)
	if flags&hasMTime != 0 {
		sec := d.signed()
		t := time.Unix(sec, int64(d.unsigned(999_999_999))).UTC()
		e.MTime = &t
	}
	e.Made = flags&isMade != 0
	if d.bad || len(d.rest) > 0 {
		return entry{}, errEncoding
	}
	return e, nil
}

// decoder takes values off rest; bad stays set after the first that is not there.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n int) {
	if n <= 0 {
		d.bad, d.rest = true, nil
		return
	}
	d.rest = d.rest[n:]
}

func (d *decoder) unsigned(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	d.take(n)
	d.bad = d.bad || v > limit
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	d.take(n)
	return v
}

func (d *decoder) text() string {
	n := d.unsigned(math.MaxInt32)
	if n > uint64(len(d.rest)) {
		d.bad = true
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) optional(present byte) *uint32 {
	if present == 0 {
		return nil
	}
	v := uint32(d.unsigned(math.MaxUint32))
	return &v
}
