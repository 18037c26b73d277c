"""Runs the stressors of a class of stress-ng, as an ordinary user: stress.py SECONDS CLASS [EARLIER-CLASS...].

Stressors that are also in an earlier class are left out, because that class runs them.
"""

import os
import subprocess
import sys

from outcome import report, run, show

SECONDS, CLASS, EARLIER = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
# Exit statuses of stress-ng (man page) that are not failures: lack of resources, and missing features.
STATUS = {0: "pass", 3: "skip", 4: "skip", None: "hang"}


def stressors(name):
    out = subprocess.run(["stress-ng", "--class", name + "?"], capture_output=True, text=True)
    return (out.stdout + out.stderr).split(":", 1)[1].split()


earlier = {s for c in EARLIER for s in stressors(c)}
os.makedirs("/tmp/stress", exist_ok=True)
os.chown("/tmp/stress", 1000, 1000)
for name in stressors(CLASS):
    if name in earlier:
        continue
    status, text = run(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "stress-ng", "--verify",
                        "--temp-path", "/tmp/stress", "--timeout", "1", "--" + name, "1"], SECONDS)
    if status:
        show(text)
        print("exit status", status)
    report(STATUS.get(status, "fail"), name)
