package fs

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// FilesystemType is what the mount table shows behind "fuse.".
const FilesystemType = "lakefs-mount"

// MountOptions are those of the kernel's side of the mount.
type MountOptions struct {
	AllowOther bool
	ReadOnly   bool
	Fatal      func(reason any) // called when a request panicked; must end the process. nil: os.Exit(2)
}

// Mount is a mounted file system.
type Mount struct {
	fs         *FS
	server     *fuse.Server
	mountpoint string
	serving    sync.WaitGroup
}

// Kernel capabilities beyond go-fuse's defaults (read.md, "go-fuse settings").
const (
	capAtomicTruncate = fuse.CAP_ATOMIC_O_TRUNC
	// capKillPrivV2 spares a GETXATTR before each write: the kernel tells when
	// set-id bits should go, and a nosuid mount gives them no meaning.
	capKillPrivV2 = 1 << 28
)

// Mount mounts f on the directory mountpoint and serves it until it is
// unmounted. It is called once. A PassedDescriptor is mounted already, with the options
// of who did: those given here are for others.
func (f *FS) Mount(mountpoint string, o MountOptions) (*Mount, error) {
	options := f.mountOptions(o)
	f.root.name.ino = rootIno
	path, err := mountpoint, error(nil)
	if _, passed := PassedDescriptor(mountpoint); passed {
		options.DirectMount = false // it is done
	} else if path, err = filepath.EvalSymlinks(mountpoint); err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", mountpoint, err)
	}
	f.proc.device = sync.OnceValue(func() string { return cmp.Or(f.proc.ownDevice(), f.proc.deviceAt(path)) })
	f.mapped.RawFileSystem = gofs.NewNodeFS(f.root, options)
	f.owners.RawFileSystem = f.mapped
	f.adopt()
	server, err := fuse.NewServer(newCounted(f.owners, f.Metrics), mountpoint, &options.MountOptions)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", mountpoint, err)
	}
	m := &Mount{fs: f, server: server, mountpoint: mountpoint}
	m.serving.Add(1)
	go func() {
		defer m.serving.Done()
		server.Serve()
		f.prefetch.close()
	}()
	if err := server.WaitMount(); err != nil {
		return nil, errors.Join(fmt.Errorf("mount %s: %w", mountpoint, err), server.Unmount())
	}
	f.widenReadAhead()
	return m, nil
}

func (f *FS) mountOptions(o MountOptions) *gofs.Options {
	options := []string{"default_permissions"}
	if o.ReadOnly && os.Geteuid() != 0 { // mount(2) takes it as a flag
		options = append(options, "ro")
	}
	return &gofs.Options{
		NullPermissions: true,
		RootStableAttr:  &gofs.StableAttr{Ino: rootIno, Gen: 1},
		MountOptions: fuse.MountOptions{
			AllowOther: o.AllowOther, Options: options, FsName: f.Source, Name: FilesystemType,
			DirectMount: os.Geteuid() == 0, DirectMountFlags: directFlags(o.ReadOnly),
			MaxWrite: 1 << 20, MaxBackground: 64, MaxInflightRequestBytes: 128 << 20,
			DisableSplice: true, EnableLocks: true, ExplicitDataCacheControl: true,
			ExtraCapabilities: capAtomicTruncate | capKillPrivV2 | fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_ASYNC_DIO,
			Logger:            log.New(logWriter{f.Log}, "", 0),
			PanicHandler:      f.panicked(o.Fatal),
		},
	}
}

func directFlags(readOnly bool) uintptr {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	return flags
}

// panicked ends the process: a panic leaves locks held, and the next mount
// recovers what was written.
func (f *FS) panicked(fatal func(any)) func(any) fuse.Status {
	if fatal == nil {
		fatal = func(any) { os.Exit(2) }
	}
	return func(reason any) fuse.Status {
		f.Log.Error("panic in a request; the mount ends, the next one recovers what was staged",
			slog.Any("panic", reason), slog.String("stack", string(debug.Stack())))
		fatal(reason)
		return fuse.EIO
	}
}

// Wait returns when the file system has been unmounted, by whomever.
func (m *Mount) Wait() { m.serving.Wait() }

// dropDentries makes the kernel ask again for everything below path.
func (f *FS) dropDentries(path string) {
	type entry struct {
		dir  *gofs.Inode
		base string
	}
	var todo []entry
	var walk func(in *gofs.Inode, at string)
	walk = func(in *gofs.Inode, at string) {
		for base, c := range in.Children() {
			p := child(at, base)
			if path == "" || p == path || below(p, path) || below(path, p) {
				walk(c, p)
				if path == "" || !below(path, p) {
					todo = append(todo, entry{in, base})
				}
			}
		}
	}
	walk(f.root.EmbeddedInode(), "")
	for _, e := range todo {
		_ = e.dir.NotifyEntry(e.base) // ENOENT: the kernel did not have it
	}
}

// logWriter turns go-fuse's messages into log lines.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.log.Debug("go-fuse", slog.String("message", string(b)))
	return len(b), nil
}
