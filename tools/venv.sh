#!/bin/sh
# Makes the Python environment of the tests: venv.sh DIR. The readers in it
# (DuckDB, pyarrow, polars) read what the mount wrote. Where it cannot be made,
# the tests that need it are skipped and say so.
set -eu

dir=$1
python="$dir/bin/python3"
readers="duckdb pyarrow polars"

if [ -x "$python" ] && "$python" -c 'import duckdb, pyarrow, polars' 2>/dev/null; then
	exit 0
fi
if ! python3 -m venv "$dir" >/dev/null 2>&1; then
	rm -rf "$dir"
	"$(dirname "$0")/deps.sh" python3-venv-is-missing=python3-venv || true
	python3 -m venv "$dir" >/dev/null 2>&1 || { echo "No Python venv: the readers' tests are skipped" >&2; exit 0; }
fi
# shellcheck disable=SC2086 # words are packages
"$python" -m pip install --quiet --disable-pip-version-check $readers ||
	echo "$readers could not be installed: their tests are skipped" >&2
