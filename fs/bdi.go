package fs

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
)

// kernelReadAhead is how far the kernel reads ahead of a program, in KiB, and so how
// large its requests are: it offers 128 KiB, and only root may set more.
const kernelReadAhead = 1024

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
