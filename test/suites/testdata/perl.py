"""Runs files of perl's core tests: perl.py SECONDS PATTERN... A pattern is a file name below t/, with wildcards."""

import glob
import os
import re
import sys

from outcome import report, run, show

os.chdir("/suites/perl/t")
files = sorted({f for pattern in sys.argv[2:] for f in glob.glob(pattern)})
LINE = re.compile(r"^(not )?ok (\d+)(?: *-? *([^#\n]*))?(#.*)?$", re.M)
for file in files:
    taint = re.match(r"#!.*perl.*\s-\w*([tT])", open(file, errors="replace").readline())
    status, text = run(["./perl"] + (["-" + taint[1]] if taint else []) + [file], float(sys.argv[1]))
    failed = False
    for bad, number, _, directive in LINE.findall(text):
        directive = directive.lower()
        word = "skip" if "skip" in directive else "fail" if bad and "todo" not in directive else "pass"
        failed |= word == "fail"
        report(word, f"{file} {number}")
    if re.search(r"^1\.\.0", text, re.M):
        report("skip", file)
    else:
        report("hang" if status is None else "crash" if status and not failed else "fail" if status else "pass", file)
    if status:
        show(text)
