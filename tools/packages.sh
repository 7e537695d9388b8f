#!/bin/sh
# Builds the packages into a directory: packages.sh DIR [ARCH…] (amd64 and arm64 without).
# Each architecture gets a .deb, a .rpm and a .tar.gz with the same files. The same
# sources and the same Go give the same bytes, wherever they are built: nothing of the
# machine, its clock or the directory goes in.
#
# The stamps come from git. Sources without git are built with VERSION, REVISION and
# SOURCE_DATE_EPOCH (seconds) in the environment.
set -eu

out=$1
shift
[ $# -gt 0 ] || set -- amd64 arm64
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$root"

go=${GO:-go}
export GOTOOLCHAIN=auto GOFLAGS= GOWORK=off GOEXPERIMENT= GOFIPS140=off
export LC_ALL=C TZ=UTC
umask 022

# version is 1.2.3 at the tag v1.2.3, 1.2.3+4.1a2b3c4d5e6f four commits after it, and
# 0.0.0~TIME.1a2b3c4d5e6f where there is no tag. ~ sorts before everything.
version() {
	if described=$(git describe --tags --match 'v[0-9]*' --abbrev=12 2>/dev/null); then
		echo "$described" | sed -E 's/^v//; s/-([0-9]+)-g([0-9a-f]+)$/+\1.\2/; s/-/~/g'
	else
		git log -1 --format='0.0.0~%cd.%h' --date=format:%Y%m%d%H%M%S --abbrev=12
	fi
}

if [ -z "${VERSION:-}" ]; then
	changed=""
	[ -z "$(git status --porcelain)" ] || changed=+changed
	VERSION=$(version)$changed
	REVISION=$(git rev-parse HEAD)$changed
	SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
fi
export VERSION SOURCE_DATE_EPOCH
revised=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # ARCH FILE
	CGO_ENABLED=0 GOOS=linux GOARCH=$1 GOAMD64=v1 GOARM64=v8.0 "$go" build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X main.version=$VERSION -X main.revision=$REVISION -X main.revised=$revised" \
		-o "$2" ./cmd/lakefs-mount
}

# notices prints the licences of all modules that are in the program.
notices() {
	echo "lakefs-mount contains these modules and the standard library of Go, each under its own licence."
	{
		# Not every distribution of Go has its licence in it; that of golang.org/x is the same text.
		printf 'the standard library of Go\t%s\t%s\n' "$("$go" env GOVERSION)" "$("$go" list -m -f '{{.Dir}}' golang.org/x/sys)"
		"$go" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}' ./cmd/lakefs-mount | sort -u
	} | while IFS='	' read -r path release dir; do
		found=$(find "$dir/" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
		[ -n "$found" ] || { echo "$path $release has no licence file" >&2; exit 1; }
		printf '\n%s\n%s %s\n\n' "$(printf '%080d' 0 | tr 0 =)" "$path" "$release"
		echo "$found" | while read -r file; do cat "$file"; echo; done
	done
}

# The program of this machine writes its own man pages and completions.
host=$work/host
build "$("$go" env GOHOSTARCH)" "$host"
stage=$work/stage
mkdir -p "$stage/completion"
"$host" man --dir "$stage/man"
gzip -9nr "$stage/man"
for shell in bash zsh fish; do "$host" completion "$shell" >"$stage/completion/$shell"; done
notices >"$stage/THIRD-PARTY-NOTICES"
printf 'lakefs-mount (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$VERSION" \
	"$(sed -n 's/^maintainer: //p' packaging/nfpm.yaml)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" |
	gzip -9n >"$stage/changelog.gz"
cp -r LICENSE CHANGELOG.md docs packaging "$stage/"
find "$stage/packaging" -name '*.go' -delete

(cd tools/nfpm && "$go" build -o "$work/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm)

for ARCH in "$@"; do
	export ARCH
	build "$ARCH" "$stage/lakefs-mount"
	# Of every file the time is that of the revision, and the mode that of the package.
	chmod -R u=rwX,go=rX "$stage"
	chmod 755 "$stage/lakefs-mount" "$stage"/packaging/scripts/*
	find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	for kind in deb rpm; do
		(cd "$stage" && "$work/nfpm" package --config packaging/nfpm.yaml --packager $kind --target "$work") >/dev/null
	done
	name=lakefs-mount_${VERSION}_linux_$ARCH
	rm -f "$work/tar"
	tar -C "$stage" --sort=name --format=posix --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
		--mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --transform "s,^\.,$name," -cf - . | gzip -9n >"$work/$name.tar.gz"
done
rm -f "$out"/lakefs-mount[_-]*.deb "$out"/lakefs-mount[_-]*.rpm "$out"/lakefs-mount[_-]*.tar.gz
mv "$work"/*.deb "$work"/*.rpm "$work"/*.tar.gz "$out/"
(cd "$out" && sha256sum -- *.deb *.rpm *.tar.gz >SHA256SUMS)
ls -l "$out"
