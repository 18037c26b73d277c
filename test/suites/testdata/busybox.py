"""Runs busybox's tests, applet by applet: busybox.py SECONDS."""

import collections
import os
import re
import sys

from outcome import report, run, show

os.chdir("/suites/busybox/testsuite")
applets = {name.removesuffix(".tests") for name in os.listdir(".")
           if name.endswith(".tests") or os.path.isdir(name)}
WORDS = {"PASS": "pass", "FAIL": "fail", "SKIPPED": "skip", "UNTESTED": "skip"}
for applet in sorted(applets):
    status, text = run(["./runtest", "-v", applet], float(sys.argv[1]),
                       env={**os.environ, "ECHO": "/bin/busybox echo -ne"})  # otherwise the tests compile an echo program
    if "FAIL" in text:
        show(text, 20000)
    seen = collections.Counter()
    for word, name in re.findall(r"^(PASS|FAIL|SKIPPED|UNTESTED): (.*)$", text, re.M):
        seen[name] += 1
        report(WORDS[word], f"{applet}: {name}" + (f" ({seen[name]})" if seen[name] > 1 else ""))
    if status is None:
        show(text)
        report("hang", applet)
