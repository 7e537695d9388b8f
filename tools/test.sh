#!/bin/sh
# Runs go test and says how many tests ran on a real mount: test.sh COUNT-FILE ARGUMENTS…
# The result lines of the packages come once more at the end.
set -eu

mkdir -p "$(dirname "$1")"
count=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
: >"$count"
: >"$count.left"
log=$(mktemp)
trap 'rm -f "$log" "$log.status"' EXIT

{
	status=0
	MOUNTTEST_COUNT="$count" MOUNTTEST_LEFT="$count.left" "${GO:-go}" test -count=1 "$@" 2>&1 || status=$?
	echo "$status" >"$log.status"
} | tee "$log"
status=$(cat "$log.status")

mounted=$(sort -u "$count" | wc -l)
printf '\n%s tests ran on a real mount (%s mounts).\n' "$mounted" "$(wc -l <"$count")"
if grep -q 'no mount is possible here' "$log"; then
	echo "Some were skipped: no mount is possible here."
fi
if [ -s "$count.left" ]; then
	echo "Left out in buckets, for they are of the folder alone:"
	cut -f1 "$count.left" | sort | uniq -c | sort -rn
fi
grep -E '^(ok|FAIL)[[:space:]]' "$log" || true
exit "$status"
