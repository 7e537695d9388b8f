#!/bin/sh
# Builds versitygw, the S3 server of the tests, unless it is built already, and
# prints where it is. Processes that come at once build it once: a cold build
# takes a minute of two processors.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
export GOFLAGS= GOTOOLCHAIN=auto # what the caller builds its own with is no concern here
cd "$root/tools/versitygw"
dir=$root/.cache/versitygw
binary=$dir/versitygw-$({ cat go.mod go.sum; "$go" version; } | sha256sum | cut -c 1-16)

if [ ! -x "$binary" ]; then
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	if [ ! -x "$binary" ]; then
		echo "Building versitygw, once" >&2
		rm -f "$dir"/versitygw-*
		"$go" build -o "$binary.new" github.com/versity/versitygw/cmd/versitygw
		mv "$binary.new" "$binary"
	fi
fi
echo "$binary"
