#!/bin/sh
# Runs each fuzz target of the module for a time: fuzz.sh TIME
set -eu

grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "$(dirname "$file") $target"
		"${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 100x "$(dirname "$file")" </dev/null
	done
done
