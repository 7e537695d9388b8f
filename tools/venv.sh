#!/bin/sh
# Makes the Python environment of the tests: venv.sh DIR. It has readers (DuckDB,
# pyarrow, polars, fastavro) and writers (fastparquet, openpyxl) of files, writers of tables in
# AWS Glue (awswrangler, PyIceberg, boto3), the AWS CLI, a parser of SQL (sqlglot), a checker of Kubernetes' files, and
# servers that stand in for AWS (MiniStack, moto). Where it cannot be made, the tests that need it are skipped
# and say so.
set -euf

dir=$1
python="$dir/bin/python3"
packages="duckdb pyarrow polars awscli ministack moto[server] awswrangler pyiceberg[glue,pyarrow] boto3 fastparquet fastavro openpyxl sqlglot kubernetes-validate"

# What is slow to import is only looked for.
imports='
import duckdb, pyarrow, polars, ministack, moto.server, boto3
import importlib.util as util, sys
sys.exit(None in [util.find_spec(m) for m in ["awswrangler", "pyiceberg.catalog.glue", "fastparquet", "fastavro", "openpyxl", "sqlglot", "kubernetes_validate"]])'

# The CLI is started, not looked for: that fails in an environment that was moved.
installed() {
	[ -x "$python" ] && "$python" -c "$imports" 2>/dev/null &&
		"$dir/bin/aws" --version >/dev/null 2>&1
}

if installed; then
	exit 0
fi
if ! python3 -m venv "$dir" >/dev/null 2>&1; then
	rm -rf "$dir"
	"$(dirname "$0")/deps.sh" python3-venv-is-missing=python3-venv || true
	python3 -m venv "$dir" >/dev/null 2>&1 || { echo "No Python venv: the tests that need it are skipped" >&2; exit 0; }
fi
# shellcheck disable=SC2086 # words are packages
"$python" -m pip install --quiet --disable-pip-version-check $packages ||
	echo "$packages could not be installed: the tests that need them are skipped" >&2
