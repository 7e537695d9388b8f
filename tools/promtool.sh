#!/bin/sh
# Prints where promtool is, which checks metrics, alert rules and the dashboard in the
# tests: the one in PATH, or that of Debian's package prometheus, taken out of it into
# .cache/promtool. The package is not installed: that would start a server.
set -eu

command -v promtool && exit 0

root=$(cd "$(dirname "$0")/.." && pwd)
dir=$root/.cache/promtool
if [ ! -x "$dir/promtool" ]; then
	if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-deb >/dev/null 2>&1; then
		echo "Please install promtool, which comes with Prometheus" >&2
		exit 1
	fi
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	if [ ! -x "$dir/promtool" ]; then
		echo "Getting promtool, once" >&2
		new=$(mktemp -d "$dir/new.XXXXXX")
		trap 'rm -rf "$new"' EXIT
		cd "$new"
		apt-get download -qq prometheus >/dev/null 2>&1 || {
			sudo=""
			[ "$(id -u)" -eq 0 ] || sudo=sudo
			$sudo apt-get update -qq >&2 && apt-get download -qq prometheus >&2
		}
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
		mv usr/bin/promtool "$dir/promtool"
	fi
fi
echo "$dir/promtool"
