"""Runs the AWS CLI many times in one process, for each start takes a second: cli.py
ENDPOINT, a JSON list of arguments a line on standard input. Prints a JSON list
[exit code, output] a line."""

import contextlib
import io
import json
import sys

from awscli.clidriver import create_clidriver

driver = create_clidriver()
for line in sys.stdin:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = driver.main(["--endpoint-url", sys.argv[1], "--output", "json", *json.loads(line)])
    print(json.dumps([code, out.getvalue()]), flush=True)
