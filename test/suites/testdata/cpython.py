"""Runs a module of CPython's tests: cpython.py SECONDS MODULE [PATTERN...].

A child runs the tests and appends their outcomes to a file. If it makes no progress for SECONDS, or dies, the test in
progress has hung or crashed, and another child continues after it. A pattern is a prefix of a test's name after the module.
"""

import faulthandler
import os
import signal
import subprocess
import sys
import time
import unittest

from outcome import report

RECORD = "/tmp/record"


def record(word, test):
    with open(RECORD, "a") as f:
        f.write(f"{word} {' '.join(test.id().split())}\n")


class Result(unittest.TestResult):
    """Records outcomes. A test with a failed subtest fails."""

    def startTest(self, test):
        super().startTest(test)
        self.failed = False
        record("start", test)

    def say(self, word, test, err=None):
        if err:
            print(f"{word}: {test.id()}\n{self._exc_info_to_string(err, test)}", flush=True)
        record(word, test)

    def addSuccess(self, test):
        if not self.failed:
            self.say("pass", test)

    def addError(self, test, err):
        self.failed = True
        self.say("fail", test, err)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err:
            self.addError(test, err)

    def addSkip(self, test, reason):
        print(f"skip: {test.id()}: {reason}", flush=True)
        record("skip", test)

    def addExpectedFailure(self, test, err):
        self.say("pass", test)

    def addUnexpectedSuccess(self, test):
        self.say("fail", test)


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def child(module, patterns):
    faulthandler.enable()
    from test import support
    from test.support import os_helper
    support.use_resources = ["subprocess"]
    support.verbose = 1
    done = {line.split(None, 1)[1].strip() for line in open(RECORD)}
    with os_helper.temp_cwd(f"test_python_{os.getpid()}"):
        try:
            tests = unittest.defaultTestLoader.loadTestsFromName("test." + module)
        except unittest.SkipTest as skip:
            print("skip:", module, skip)
            with open(RECORD, "a") as f:
                f.write(f"skip {module}\n")
            return
        prefix = "test." + module + "."
        chosen = [t for t in flat(tests) if t.id() not in done and (
            not patterns or any(t.id().removeprefix(prefix).startswith(p) for p in patterns))]
        unittest.TestSuite(chosen).run(Result())


def outcomes():
    """Returns the last outcome of each test, and the test that is in progress."""
    last, started = {}, None
    for line in open(RECORD):
        word, name = line.strip().split(None, 1)
        if word == "start":
            started = name
        else:
            if last.get(name) != "fail":
                last[name] = word
            if name == started:
                started = None
    return last, started


def watch(process, seconds):
    """Waits for a child. It returns "hang" if the child made no progress, "crash" if it died."""
    size, since = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now = os.stat(RECORD).st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > seconds:
            os.kill(process.pid, signal.SIGABRT)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
            return "hang"
    if process.returncode:
        print("exit status", process.returncode, flush=True)
    return "crash" if process.returncode else ""


def parent(seconds, args):
    open(RECORD, "w").close()
    while True:
        process = subprocess.Popen([sys.executable, __file__, "child"] + args, start_new_session=True)
        ended = watch(process, seconds)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        _, started = outcomes()
        if not ended or not started:
            break
        with open(RECORD, "a") as f:
            f.write(f"{ended} {started}\n")
    for name, word in outcomes()[0].items():
        report(word, name)
    if ended:
        report(ended, args[0])


if sys.argv[1] == "child":
    child(sys.argv[2], sys.argv[3:])
else:
    parent(float(sys.argv[1]), sys.argv[2:])
