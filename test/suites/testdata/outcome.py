"""Prints outcomes of tests, one in a line, and runs programs with a limit of time."""

import os
import signal
import subprocess
import sys


def report(outcome, name):
    """Prints the outcome of a test: pass, fail, skip, hang or crash."""
    print(f"\n@result {outcome} {name}", flush=True)


def run(args, seconds, **options):
    """Runs a program in a session of its own, and returns its exit status and output.

    The status is None if the program did not end in time. Then all processes of its group are killed.
    """
    with open("/tmp/output", "wb+") as out:
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True, **options)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
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
