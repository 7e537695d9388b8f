package fs

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
)

// kernelReadAhead is how far the kernel reads ahead of a program, in KiB, and so how
// large its requests are: it offers 128 KiB, and only root may set more. A read of 1 MiB
// anywhere is then less than it, and is asked for as it is; with 1024 the kernel takes
// one that begins within a page for the start of a longer one, and asks for twice that.
// More would cost readers of mappings, of whom each fault takes so much.
const kernelReadAhead = 2048

// widenReadAhead raises the read-ahead of the mount, where that is allowed. The mount's
// own read-ahead does not need it; larger requests cost less processor time.
func (f *FS) widenReadAhead() {
	device := f.proc.device()
	if device == "" {
		return
	}
	path := filepath.Join("/sys/class/bdi", device, "read_ahead_kb")
	if err := os.WriteFile(path, []byte(strconv.Itoa(kernelReadAhead)), 0o644); err != nil {
		f.Log.Debug("the kernel's read-ahead stays as it is", slog.Any("error", err))
	}
}
