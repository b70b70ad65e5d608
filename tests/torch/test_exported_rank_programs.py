"""Programs of ranks that torch.export writes: `shardprop verify --rank-programs` finds
them right, and names a reduction that is left out."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch.testing._internal.distributed.fake_pg import FakeStore

BINARY = os.environ["SHARDPROP_BIN"]


class Model(torch.nn.Module):
    """Two matmuls over hidden columns, of which each rank has its part."""

    def __init__(self, ranks, sums=True):
        super().__init__()
        self.up = torch.nn.Parameter(torch.randn(8, 16 // ranks))
        self.down = torch.nn.Parameter(torch.randn(16 // ranks, 8))
        self.ranks, self.sums = ranks, sums

    def forward(self, x):
        y = torch.nn.functional.gelu(x @ self.up) @ self.down
        if self.ranks > 1:
            world = dist.group.WORLD
            if self.sums:
                y = collectives.all_reduce(y, "sum", world)
            part = collectives.reduce_scatter_tensor(y, "avg", 0, world)
            y = collectives.all_gather_tensor(part, 0, world)
        return y, torch.softmax(y, -1)


class Exported(unittest.TestCase):
    def report(self, sums, status):
        with tempfile.TemporaryDirectory() as to:
            folder = pathlib.Path(to)
            x = torch.randn(4, 8)
            single = folder / "single.pt2"
            torch.export.save(torch.export.export(Model(1), (x,)), single)
            for rank in range(2):
                dist.init_process_group(
                    "fake", rank=rank, world_size=2, store=FakeStore()
                )
                try:
                    program = torch.export.export(Model(2, sums), (x,))
                    torch.export.save(program, folder / f"rank{rank}.pt2")
                finally:
                    dist.destroy_process_group()
            inputs = [("up", "S(1)"), ("down", "S(0)"), ("x", "R")]
            (folder / "shardings.json").write_text(json.dumps({
                "schema": "shardprop.shardings/1",
                "inputs": [
                    {"name": name, "placements": [layout]} for name, layout in inputs
                ],
            }))
            done = subprocess.run(
                [
                    BINARY, "verify", single, "--mesh", "tp=2", "--rank-programs",
                    folder, "--format", "json",
                ],
                capture_output=True, text=True, check=False,
            )
            self.assertEqual(done.returncode, status, done.stderr + done.stdout)
            return json.loads(done.stdout)

    def test_right(self):
        found = self.report(True, 0)
        self.assertEqual([one["placements"] for one in found["outputs"]], [["R"]] * 2)
        self.assertEqual(found["collectives"]["reduce_scatter"], 1)

    def test_a_mean_in_place_of_a_sum(self):
        found = self.report(False, 1)["mismatch"]
        self.assertAlmostEqual(found["factor"], 0.5)
        self.assertEqual(found["placements"], ["R"])


if __name__ == "__main__":
    unittest.main()
