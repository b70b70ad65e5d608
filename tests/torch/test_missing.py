#!/usr/bin/env python3
"""Our rules have every right layout that DTensor's rules have. The test tries
every layout of the inputs of every captured call on one mesh dim.

Integers that wrap round are the exception: a sum of an extremum is none of them.
"""

import pathlib
import re
import subprocess
import sys
import unittest

from sharding.capture import Call, Meta, Operand
from sharding.missing import find_missing

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
        # The search finds the sums that wrap, which are known to be missing.
        self.assertGreater(len(theirs), 0)
        # No layout without partials is missing, in DTensor's rules or beyond
        # them.
        inputs = re.compile(r"\S+: (\S+)->")
        whole_or_cut = [
            line for line in lines[:-1] if "P(" not in inputs.match(line).group(1)
        ]
        self.assertEqual(whole_or_cut, [])


def found_of(op, inputs, output, names=("self", "other")):
    """Returns the findings for a call with only replicated and sharded operands
    known."""
    args = tuple((names[i], Operand(i)) for i in range(len(inputs)))
    call = Call(op, args, tuple(inputs), (output,))
    known = {"inputs": [["R"] for _ in inputs], "outputs": [["R"]]}
    in_parts = {"inputs": [["S(0)"] for _ in inputs], "outputs": [["S(0)"]]}
    return {
        ",".join(laid) + "->" + ",".join(made)
        for laid, made in find_missing(call, [known, in_parts], seed=0)
    }


class SpecialValues(unittest.TestCase):
    some = Meta((9,), (1,), "f32")

    def test_what_is_no_number_tells(self):
        # fmax returns the larger of two numbers and ignores NaN.
        found = found_of("aten.fmax.default", [self.some, self.some], self.some)
        self.assertEqual(found, {"P(min),R->P(min)", "R,P(min)->P(min)"})
        found = found_of("aten.maximum.default", [self.some, self.some], self.some)
        self.assertIn("P(max),P(max)->P(max)", found)
        self.assertIn("P(max),R->P(max)", found)

    def test_what_is_zero_tells(self):
        found = found_of("aten.xlogy.Tensor", [self.some, self.some], self.some)
        self.assertEqual(found, set())
        found = found_of("aten.mul.Tensor", [self.some, self.some], self.some)
        self.assertIn("P(sum),R->P(sum)", found)
        truth = Meta((), (), "bool")
        self.assertEqual(found_of("aten.any.default", [self.some], truth), set())


if __name__ == "__main__":
    unittest.main()
