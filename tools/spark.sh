#!/bin/sh
# Makes what the tests with Spark need: spark.sh DIR. PySpark goes to DIR/venv, some
# 500 MB; the jars that read S3 come at Spark's first start, to DIR/ivy, 280 MB.
set -euf

dir=$1
python="$dir/venv/bin/python3"
packages="pyspark==3.5.* boto3 setuptools"

"$(dirname "$0")/deps.sh" java=openjdk-17-jre-headless
if [ -x "$python" ] && "$python" -c 'import pyspark, boto3' 2>/dev/null; then
	exit 0
fi
python3 -m venv "$dir/venv"
# shellcheck disable=SC2086 # words are packages
"$python" -m pip install --quiet --disable-pip-version-check $packages
