package objectstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// xattrWriteID keeps MetaWriteID.
const xattrWriteID = "user." + MetaWriteID

// modeBits of a file's mode go with the object.
const modeBits = 0o7777

// appendETag writes the version of a file as inode, size and mtime.
func appendETag(b []byte, st *unix.Stat_t) []byte {
	size := st.Size
	if isDirectory(st) {
		size = 0
	}
	b = strconv.AppendUint(b, st.Ino, 16)
	b = strconv.AppendUint(append(b, '-'), uint64(size), 16)
	return strconv.AppendUint(append(b, '-'), uint64(st.Mtim.Nano()), 16)
}

func etagOf(st *unix.Stat_t) string {
	var a [64]byte
	return string(appendETag(a[:0], st))
}

// versionOf returns both forms of a file's version, in one string.
func versionOf(st *unix.Stat_t) (etag, match string) {
	var a [80]byte
	b := appendETag(a[:0], st)
	n := len(b)
	b = strconv.AppendUint(append(b, '-'), uint64(st.Ctim.Nano()), 16)
	match = string(b)
	return match[:n], match
}

// matches reports that the file is the version named by an ETag or a Match.
func matches(st *unix.Stat_t, version string) bool {
	etag, match := versionOf(st)
	if strings.Count(version, "-") == 3 {
		return version == match
	}
	return version == etag
}

// objectOf is the object at loc without metadata.
func objectOf(loc Location, st *unix.Stat_t) Object {
	o := Object{Location: loc, ModTime: time.Unix(st.Mtim.Unix())}
	if !isDirectory(st) {
		o.Size = st.Size
	}
	o.ETag, o.Match = versionOf(st)
	return o
}

// metaOf tells what the file itself keeps of the metadata, and the write id.
func metaOf(st *unix.Stat_t, writeID string) map[string]string {
	m := map[string]string{
		MetaMode:  formatMode(st.Mode),
		MetaMTime: formatTime(time.Unix(st.Mtim.Unix())),
	}
	if writeID != "" {
		m[MetaWriteID] = writeID
	}
	return m
}

func formatMode(mode uint32) string { return strconv.FormatUint(uint64(mode&modeBits), 8) }

// formatTime writes seconds since 1970, with decimals where there are any.
func formatTime(t time.Time) string {
	sec, nsec := t.Unix(), t.Nanosecond()
	if nsec == 0 {
		return strconv.FormatInt(sec, 10)
	}
	var b []byte
	if sec < 0 { // -1.25 is 0.75 s after -2
		b, sec, nsec = append(b, '-'), -sec-1, 1e9-nsec
	}
	b = append(strconv.AppendInt(b, sec, 10), '.')
	dot := len(b)
	b = strconv.AppendInt(b, int64(1e9+nsec), 10)
	b = append(b[:dot], b[dot+1:]...) // the 1 that kept the zeros
	return strings.TrimRight(string(b), "0")
}

// parseTime is formatTime's inverse.
func parseTime(s string) (time.Time, error) {
	whole, frac, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || len(frac) > 9 {
		return time.Time{}, fmt.Errorf("time %q: want seconds since 1970", s)
	}
	nsec, err := strconv.ParseUint("0"+frac+strings.Repeat("0", 9-len(frac)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q: want seconds since 1970", s)
	}
	if strings.HasPrefix(whole, "-") {
		return time.Unix(sec, -int64(nsec)), nil
	}
	return time.Unix(sec, int64(nsec)), nil
}

// writeIDOf reads the write id of an open file, of an O_PATH descriptor too
// (which fgetxattr does not take). Without one, or without extended attributes:
// "".
func writeIDOf(fd int) string {
	var b [256]byte
	n, err := unix.Getxattr("/proc/self/fd/"+strconv.Itoa(fd), xattrWriteID, b[:])
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// fileMeta is the metadata that a file can keep, parsed.
type fileMeta struct {
	mode    *uint32
	mtime   *time.Time
	writeID string
}

func parseMeta(meta map[string]string) (fileMeta, error) {
	m := fileMeta{writeID: meta[MetaWriteID]}
	if s, ok := meta[MetaMode]; ok {
		v, err := strconv.ParseUint(s, 8, 32)
		if err != nil {
			return m, fmt.Errorf("metadata %s %q: want an octal number", MetaMode, s)
		}
		mode := uint32(v) & modeBits
		m.mode = &mode
	}
	if s, ok := meta[MetaMTime]; ok {
		t, err := parseTime(s)
		if err != nil {
			return m, fmt.Errorf("metadata %s: %w", MetaMTime, err)
		}
		m.mtime = &t
	}
	return m, nil
}

// apply gives the open file the metadata. The mode comes last: without write
// permission the kernel refuses the attribute.
func (m fileMeta) apply(fd int) error {
	if err := m.applyWriteID(fd); err != nil {
		return err
	}
	if m.mtime != nil {
		mtime, err := unix.TimeToTimespec(*m.mtime)
		if err != nil {
			return err
		}
		times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, mtime}
		if err := retry(func() error { return futimens(fd, &times) }); err != nil {
			return err
		}
	}
	if m.mode != nil {
		return retry(func() error { return unix.Fchmod(fd, *m.mode) })
	}
	return nil
}

// applyWriteID sets or clears the write id. Where it cannot be kept, a lost
// answer is settled by the version alone.
func (m fileMeta) applyWriteID(fd int) error {
	err := retry(func() error {
		if m.writeID == "" {
			return unix.Fremovexattr(fd, xattrWriteID)
		}
		return unix.Fsetxattr(fd, xattrWriteID, []byte(m.writeID), 0)
	})
	if is(err, unix.ENODATA, unix.ENOTSUP, unix.ENOSYS, unix.EPERM, unix.EACCES, unix.E2BIG, unix.ERANGE,
		unix.ENOSPC) { // ENOSPC: of attributes, not of bytes
		return nil
	}
	return err
}

// futimens is utimensat(fd, NULL), which x/sys has no call for.
func futimens(fd int, times *[2]unix.Timespec) error {
	return unix.UtimesNanoAt(fd, "", times[:], unix.AT_EMPTY_PATH)
}
