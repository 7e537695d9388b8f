package fs

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// lazyFusermount detaches a mount of ours as an ordinary user.
func lazyFusermount(mountpoint string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "fusermount3", "-u", "-z", mountpoint).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3 -u -z %s: %w: %s", mountpoint, err, out)
	}
	return nil
}
