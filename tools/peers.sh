#!/bin/sh
# Gets the other mounts of the read benchmark: rclone, built once from its Go module
# into .cache/peers, and s3fs, a Debian package. One that cannot be had is said so and
# left out; mount-s3, goofys and geesefs are measured where their commands are there.
set -u

rclone=v1.76.0

root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
export GOFLAGS= GOTOOLCHAIN=auto # what the caller builds its own with is no concern here
dir=$root/.cache/peers
mkdir -p "$dir"

if ! "$dir/rclone" version 2>/dev/null | grep -q "^rclone $rclone"; then
	echo "Building rclone $rclone, once" >&2
	# A directory outside the module: what it needs is no concern of go.mod.
	if ! (cd / && GOBIN=$dir "$go" install "github.com/rclone/rclone@$rclone"); then
		echo "rclone cannot be built: it is left out" >&2
	fi
fi
"$root/tools/deps.sh" s3fs=s3fs || echo "s3fs cannot be installed: it is left out" >&2
exit 0
