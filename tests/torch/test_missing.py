#!/usr/bin/env python3
"""What DTensor's rules say of a call, and is right, ours say too: every layout of
the inputs of every captured call on one mesh dim is tried.

Integers that wrap round are the exception: a sum of an extremum is none of them.
"""

import pathlib
import re
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent


class Missing(unittest.TestCase):
    def test_what_stock_has(self):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", FOLDER / "prove_rules.py", "--missing"],
            capture_output=True, text=True, check=True)  # fmt: skip
        lines = done.stdout.splitlines()
        self.assertRegex(lines[-1], r"^\d+ more would work, \d+ of them by DTensor")
        theirs = [line for line in lines if line.endswith("(DTensor has it)")]
        wraps = re.compile(r"aten\.(add|sub|neg)\.\w+: \S*P\((max|min)\).*\(i\d+\[")
        self.assertEqual([line for line in theirs if not wraps.match(line)], [])
        # The search finds what is known to be there.
        self.assertGreater(len(theirs), 0)
        # Without partials nothing is missing, whoever has it.
        inputs = re.compile(r"\S+: (\S+)->")
        whole_or_cut = [
            line for line in lines[:-1] if "P(" not in inputs.match(line).group(1)
        ]
        self.assertEqual(whole_or_cut, [])


if __name__ == "__main__":
    unittest.main()
