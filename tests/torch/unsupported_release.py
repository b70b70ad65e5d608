"""A release of torch that shardprop.torch does not support: it is refused when it is
imported, and .pt2 files are planned all the same.

$SHARDPROP_PACKAGE is the folder of the built package.
"""

import pathlib
import tempfile
import unittest

import running.package  # noqa: F401
import torch

import shardprop as sp


class Unsupported(unittest.TestCase):
    def test_it_is_refused(self):
        with self.assertRaises(sp.Error) as caught:
            sp.torch
        self.assertEqual(caught.exception.code, "SP0709")
        self.assertIn("2.12, 2.13 and 2.14", caught.exception.message)
        self.assertIn(torch.__version__, str(caught.exception))
        with self.assertRaises(sp.Error):
            sp.load_graph(torch.export.export(torch.nn.Linear(4, 4), (torch.ones(4, 4),)))

    def test_its_files_are_planned(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        program = torch.export.export(model, (torch.ones(4, 4),)).run_decompositions()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.pt2")
            torch.export.save(program, path)
            plan = sp.plan(path, "tp=2", gap=0, progress=False)
        self.assertEqual(plan.status, "optimal")
        self.assertEqual(len(plan.placements("0.weight")), 1)


if __name__ == "__main__":
    unittest.main()
