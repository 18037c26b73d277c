"""Prints outcomes of tests, one in a line, and runs programs with a limit of time."""

import os
import signal
import subprocess
import sys
import time


def report(outcome, name):
    """Prints the outcome of a test: pass, fail, skip, hang or crash."""
    print(f"\n@result {outcome} {name}", flush=True)


def run(args, seconds, **options):
    """Runs a program in a session of its own, and returns its exit status and output.

    The status is None if the program printed nothing for so many seconds. Then all processes of its group are killed.
    """
    with open("/tmp/output", "wb+") as out:
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True, **options)
        size, since = 0, time.monotonic()
        while (status := process.poll()) is None and time.monotonic() - since < seconds:
            time.sleep(0.01)
            if (now := os.fstat(out.fileno()).st_size) != size:
                size, since = now, time.monotonic()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        process.wait()
        out.seek(0)
        return status, out.read().decode("utf-8", "replace")


def show(text, most=4000):
    """Prints the end of a program's output."""
    sys.stdout.write(text[-most:])
    sys.stdout.flush()
