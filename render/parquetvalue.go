package render

import (
	"encoding/binary"
	"math"
	"time"

	pq "github.com/parquet-go/parquet-go/format"
)

// put appends the text of a value, whose bytes are as PLAIN has them: little-endian; one
// byte of a boolean.
type put func(dst, raw []byte) []byte

const (
	julianEpoch    = 2440588 // the Julian day of 1970-01-01
	nanosecondsDay = int64(24 * time.Hour)
)

func int32Of(raw []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(raw))) }
func int64Of(raw []byte) int64 { return int64(binary.LittleEndian.Uint64(raw)) }

// putOf is for values that a leaf of a physical type holds, declared as file, shown as
// want.
func putOf(physical pq.Type, file, want *fileType, s style) put {
	switch file.kind {
	case boolean:
		return func(dst, raw []byte) []byte { return appendBool(dst, raw[0] != 0) }
	case text:
		return s.appendString
	case octets:
		if want.asText {
			return s.appendString
		}
		return s.appendBytes
	case uuid:
		return s.appendUUID
	case float:
		return putFloat(file.bits, s)
	case interval:
		return func(dst, raw []byte) []byte {
			word := binary.LittleEndian.Uint32
			return s.appendInterval(dst, word(raw), word(raw[4:]), word(raw[8:]))
		}
	case timestamp:
		if physical == pq.Int96 {
			return putInt96(want.unit, s)
		}
	case decimal:
		if physical == pq.ByteArray || physical == pq.FixedLenByteArray {
			return func(dst, raw []byte) []byte { return appendDecimalBytes(dst, raw, file.scale) }
		}
	}
	if physical == pq.Int32 {
		return putInteger(int32Of, file, want, s)
	}
	return putInteger(int64Of, file, want, s)
}

// putInteger is for what an integer stands for.
func putInteger(of func([]byte) int64, file, want *fileType, s style) put {
	switch file.kind {
	case decimal:
		return func(dst, raw []byte) []byte { return appendDecimal(dst, of(raw), file.scale) }
	case date:
		return func(dst, raw []byte) []byte { return s.appendDate(dst, of(raw)) }
	case timeOfDay:
		from, to := file.unit, want.unit
		return func(dst, raw []byte) []byte {
			return s.appendTimeOfDay(dst, of(raw), from, to)
		}
	case timestamp:
		return putTimestamp(file.unit, want.unit, file.utc, s)
	}
	if file.unsigned {
		if file.bits == 64 {
			return func(dst, raw []byte) []byte { return appendUint(dst, uint64(of(raw))) }
		}
		return func(dst, raw []byte) []byte { return appendUint(dst, uint64(uint32(of(raw)))) }
	}
	return func(dst, raw []byte) []byte { return appendInt(dst, of(raw)) }
}

// putTimestamp keeps the text of the day at hand: neighbours often share it.
func putTimestamp(from, to unit, utc bool, s style) put {
	var day []byte
	known := int64(-1 << 62)
	ticks := from.ticks()
	return func(dst, raw []byte) []byte {
		second, fraction := floorDiv(int64Of(raw), ticks)
		days, second := floorDiv(second, secondsADay)
		if days != known {
			day, known = append(appendDay(s.quote(day[:0]), days), 'T'), days
		}
		dst = appendClock(append(dst, day...), second, rescale(fraction, from, to), to)
		if utc {
			dst = append(dst, 'Z')
		}
		return s.quote(dst)
	}
}

// putInt96 is for nanoseconds of a day and its Julian number.
func putInt96(to unit, s style) put {
	return func(dst, raw []byte) []byte {
		more, ns := floorDiv(int64Of(raw), nanosecondsDay)
		days := int32Of(raw[8:]) - julianEpoch + more
		second, fraction := floorDiv(ns, nanos.ticks())
		return s.appendMoment(dst, days, second, rescale(fraction, nanos, to), to, false)
	}
}

// rescale turns a fraction of a second into one of another unit; what that has no digits
// for is cut off.
func rescale(fraction int64, from, to unit) int64 {
	for ; from < to; from++ {
		fraction *= 10
	}
	for ; from > to; from-- {
		fraction /= 10
	}
	return fraction
}

func putFloat(bits int, s style) put {
	switch bits {
	case 16:
		return func(dst, raw []byte) []byte {
			return s.appendFloat(dst, halfFloat(binary.LittleEndian.Uint16(raw)), 32)
		}
	case 32:
		return func(dst, raw []byte) []byte {
			return s.appendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))), 32)
		}
	}
	return func(dst, raw []byte) []byte {
		return s.appendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(raw)), 64)
	}
}
