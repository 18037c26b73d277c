"""Runs tests of glibc, each a program: glibc.py SECONDS FOLDER[/PATTERN]. A pattern is a file name, with wildcards."""

import fnmatch
import os
import sys

from outcome import report, run, show

SKIPPED = 77  # exit status of a test that is not supported here
folder, _, pattern = sys.argv[2].partition("/")
os.chdir("/suites/glibc/" + folder)
for name in sorted(fnmatch.filter(os.listdir("."), pattern or "*")):
    status, text = run(["./" + name], float(sys.argv[1]), env={**os.environ, "TIMEOUTFACTOR": "2"})
    if status != 0:
        show(f"{name}: exit status {status}\n{text[-2000:]}")
    report("hang" if status is None else "skip" if status == SKIPPED else "crash" if status < 0 else
           "fail" if status else "pass", name)
