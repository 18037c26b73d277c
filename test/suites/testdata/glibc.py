"""Runs tests of glibc, each a program: glibc.py SECONDS FOLDER."""

import os
import sys

from outcome import report, run, show

SKIPPED = 77  # exit status of a test that is not supported here
os.chdir("/suites/glibc/" + sys.argv[2])
for name in sorted(os.listdir(".")):
    status, text = run(["./" + name], float(sys.argv[1]), env={**os.environ, "TIMEOUTFACTOR": "2"})
    if status != 0:
        show(f"{name}: exit status {status}\n{text[-2000:]}")
    report("hang" if status is None else "skip" if status == SKIPPED else "crash" if status < 0 else
           "fail" if status else "pass", name)
