"""Runs busybox's tests, applet by applet: busybox.py SECONDS PATTERN... A pattern is an applet's name, with wildcards."""

import collections
import fnmatch
import os
import re
import sys

from outcome import report, run, show

os.chdir("/suites/busybox/testsuite")
applets = {name.removesuffix(".tests") for name in os.listdir(".")
           if name.endswith(".tests") or os.path.isdir(name)}
# runtest links hundreds of applets before each run. The first run makes the links, and the later runs use them.
with open("runtest") as original, open("runtest-again", "w") as again:
    again.write(original.read().replace('rm -rf "$LINKSDIR"', ":").replace("for i in $implemented; do", "for i in; do"))
os.chmod("runtest-again", 0o755)
runtest = "./runtest"
WORDS = {"PASS": "pass", "FAIL": "fail", "SKIPPED": "skip", "UNTESTED": "skip"}
for applet in sorted(applets):
    if not any(fnmatch.fnmatchcase(applet, pattern) for pattern in sys.argv[2:]):
        continue
    status, text = run([runtest, "-v", applet], float(sys.argv[1]),
                       env={**os.environ, "ECHO": "/bin/busybox echo -ne"})  # otherwise the tests compile an echo program
    runtest = "./runtest-again"
    if "FAIL" in text:
        show(text, 20000)
    seen = collections.Counter()
    for word, name in re.findall(r"^(PASS|FAIL|SKIPPED|UNTESTED): (.*)$", text, re.M):
        seen[name] += 1
        report(WORDS[word], f"{applet}: {name}" + (f" ({seen[name]})" if seen[name] > 1 else ""))
    if status is None:
        show(text)
        report("hang", applet)
