"""Runs the command line and checks what holds for every run of it."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import plan_schema

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "examples/graphs/tiny"
MLP = str(TINY / "mlp_dynamic.json.gz")
BINARY = str(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else ""
# Every case of a test, not those of every day.
FULL = os.environ.get("SHARDPROP_FULL") == "1"
# Sanitizers take time, memory and addresses of their own.
SANITIZED = os.environ.get("SHARDPROP_SANITIZED") == "1"
TIMEOUT_S = 1200 if SANITIZED else 60

# The message is one error with its code; place, notes and help follow, one per
# line.
ERROR = re.compile(
    r"error\[SP\d{4}\]: [^\n]+\n(  --> [^\n]+\n)?(   \|  [^\n]+\n)*(   = help: [^\n]+\n)?"
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def shardprop(*arguments, **options):
    """The finished run. Text in and out, unless `options` say otherwise. A plan that it
    wrote is one that the published schema allows."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(
        [BINARY, *map(str, arguments)],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        env={"NO_COLOR": "1"},
        check=False,
        **options,
    )
    plan_schema.check_text(done.stdout)
    if done.returncode in (0, 1):
        plan_schema.check_written(arguments)
    return done


def complaints(done, allowed=(0, 1, 3)):
    """Returns the faults of how a run ended; empty if there are none."""
    wrong = []
    if done.returncode not in allowed:
        wrong.append(f"exit status {done.returncode}")
    if CONTROL.search(done.stderr):
        wrong.append("control characters in the messages")
    error = re.search(r"^error.*", done.stderr, re.MULTILINE | re.DOTALL)
    if done.returncode in (2, 3, 4):
        if error is None:
            wrong.append("no error is printed")
        elif not ERROR.fullmatch(error.group()):
            wrong.append("the error is not one error in its form")
        elif done.returncode == 3 and "\n  --> " not in error.group():
            wrong.append("the error has no place")
        elif done.returncode == 3 and "\n   = help: " not in error.group():
            wrong.append("the error has no help")
    elif error is not None:
        wrong.append(f"an error, but exit status {done.returncode}")
    return wrong


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def refused(self, done, status, *words):
        """The run ended with this status and an error that holds these words."""
        self.assertEqual(complaints(done, (status,)), [], done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def took_memory(self, mib, most):
        """The run took less than `most`, as far as that can be told."""
        if not SANITIZED:
            self.assertLess(mib, most)

    def took_time(self, seconds, most):
        """Checks a limit of time in the same way."""
        if not SANITIZED:
            self.assertLess(seconds, most)

    def answered(self, done):
        self.assertEqual(complaints(done, (0,)), [], done.stderr)


def main():
    sys.argv[1:2] = []
    os.chdir(ROOT)
    unittest.main()
