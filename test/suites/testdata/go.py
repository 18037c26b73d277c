"""Runs the tests of a package of Go: go.py SECONDS PACKAGE.

All tests run in one process first. Tests that have no outcome after it, because it hung or ended early, run one by one.
"""

import os
import re
import sys

from outcome import report, run, show

seconds, package = float(sys.argv[1]), sys.argv[2]
os.chdir("/suites/go/src/" + package)
binary = "./package.test"
outcomes = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip"}


def tests(limit, *flags):
    status, text = run([binary, "-test.v", "-test.short", *flags], limit)
    found = {name: outcomes[word] for word, name in
             re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", text, re.M)}
    return status, text, found


_, listed = run([binary, "-test.list", "."], seconds)
names = [name for name in listed.split() if re.match("(Test|Example)", name)]
_, text, found = tests(seconds)
show(text, 100000)
for name in names:
    if name not in found:
        status, text, one = tests(seconds, "-test.run", f"^{name}$")
        show(text)
        found[name] = one.get(name) or ("hang" if status is None else "crash" if status else "none")
for name in names:
    report(found[name], name)
