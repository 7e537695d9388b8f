#!/bin/sh
# Installs the Debian packages of commands that are missing: deps.sh COMMAND=PACKAGE…
# Elsewhere it says what to install.
set -eu

missing=""
for pair in "$@"; do
	command -v "${pair%%=*}" >/dev/null 2>&1 || missing="$missing ${pair#*=}"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	echo "Please install:$missing" >&2
	exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		echo "Please install as root: apt-get install$missing" >&2
		exit 1
	fi
	sudo=sudo
fi
echo "Installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # words are packages
$sudo apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 ||
	{ $sudo apt-get update -qq && $sudo apt-get install -qq -y --no-install-recommends $missing >/dev/null; }
