"""Plans that run: shardprop.torch on processes of gloo.

Every example trains on as many processes as its mesh has ranks and compares
itself with one process. $SHARDPROP_PACKAGE is the folder of the built package.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from running.package import PACKAGE
import torch

import shardprop as sp
import shardprop.torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_example(*flags):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "examples/python/train_tiny_llama.py", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )


class Training(unittest.TestCase):
    def check(self, *flags):
        done = run_example(*flags)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        steps = re.findall(r"loss ([\d.]+), one process ([\d.]+)", done.stdout)
        self.assertGreaterEqual(len(steps), 3)
        for mine, theirs in steps:
            self.assertAlmostEqual(float(mine), float(theirs), places=3)
        # A plan without collectives would prove nothing.
        self.assertRegex(done.stdout, r"'all_reduce': [1-9]")

    def test_two_by_two(self):
        self.check("--steps", "3", "--mesh", "dp=2,tp=2")

    def test_uneven(self):
        self.check("--steps", "3", "--mesh", "tp=3")


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.inner(x).square().mean()


class Export(unittest.TestCase):
    def test_the_model_stays_as_it_is(self):
        model = Weighted()
        weight = model.inner.weight
        before = weight.detach().clone()
        exported = sp.torch.export(model, (torch.randn(2, 8),), mode="train")
        self.assertIs(model.inner.weight, weight)
        self.assertTrue(torch.equal(before, weight))
        graph = sp.load_graph(exported)
        self.assertTrue(graph.has_backward)
        self.assertIn(("inner.weight", "parameter"), graph.inputs)
        self.assertEqual(sp.plan(exported, "dp=2").status, "optimal")

    def test_models_on_the_meta_device(self):
        with torch.device("meta"):
            model = Weighted()
            x = torch.empty(2, 8)
        self.assertGreater(len(sp.load_graph(sp.torch.export(model, (x,)))), 0)

    def test_what_cannot_be_exported_is_explained(self):
        class Branching(torch.nn.Module):
            def forward(self, x):
                return x + 1 if x.sum() > 0 else x

        with self.assertRaises(sp.torch.ExportError) as caught:
            sp.torch.export(Branching(), (torch.randn(4),))
        self.assertIn("depends on the data", caught.exception.message)
        self.assertIn("torch.where", caught.exception.help)
        with self.assertRaises(sp.torch.ExportError):
            sp.torch.export(Weighted(), (torch.randn(2, 8),), mode="training")


if __name__ == "__main__":
    unittest.main()
