package main

import (
	"fmt"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// serveLoopback is go-fuse's own loopback of dir at mountpoint, as its example
// mounts it, but without passthrough, by which the kernel would leave it out:
// what is compared is what a FUSE server in Go reaches.
func serveLoopback(mountpoint, dir string) error {
	root, err := gofs.NewLoopbackRoot(dir)
	if err != nil {
		return fmt.Errorf("loopback of %s: %w", dir, err)
	}
	second := time.Second
	server, err := gofs.Mount(mountpoint, root, &gofs.Options{
		AttrTimeout: &second, EntryTimeout: &second, NullPermissions: true,
		MountOptions: fuse.MountOptions{
			FsName: dir, Name: "loopback", Options: []string{"default_permissions"},
			DisabledCapabilities: fuse.CAP_PASSTHROUGH,
		},
	})
	if err != nil {
		return fmt.Errorf("loopback at %s: %w", mountpoint, err)
	}
	server.Wait()
	return nil
}
