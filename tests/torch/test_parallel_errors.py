"""What goes wrong with planned modules is said, with what to do; nothing hangs.

$SHARDPROP_PACKAGE is the folder of the built package.
"""

import datetime
import os
import pathlib
import tempfile
import time
import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401

import shardprop as sp
import shardprop.torch
from shardprop.torch import _failures

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPHS = ROOT / "examples/graphs/tiny"


class Sum(torch.nn.Module):
    """Pinned so that its ranks have to tell each other something."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4))

    def forward(self, x):
        return torch.relu(x @ self.weight)


class Scaled(torch.nn.Module):
    """Takes and returns what is no tensor, and structures."""

    def forward(self, x, halves, times=1, *, z):
        return {"y": x * times + halves["a"] + z, "times": times, "nothing": None}


def summing():
    program = sp.torch.to_json(sp.torch.export(Sum(), (torch.ones(4, 4),)))
    plan = sp.plan(
        program,
        "tp=2",
        pins={"weight": "S(0)", "relu": "R", "x": "S(1)"},
        memory=None,
        progress=False,
    )
    assert sum(plan.summary["collectives"].values()) > 0
    return program, plan


def work(rank, program, plan_json, folder):
    """Rank 1 dies between two calls; what rank 0 gets goes into a file."""
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(os.path.join(folder, "store"), 2),
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=60),
    )
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    module = sp.torch.parallelize(program, sp.Plan.from_json(plan_json), mesh)
    x = torch.ones(4, 4)
    module(x)
    if rank == 1:
        os._exit(3)
    began = time.time()
    try:
        module(x)
        text = "no error"
    except sp.Error as error:
        text = f"{error.code} after {time.time() - began:.0f} s\n{error}"
    pathlib.Path(folder, "found").write_text(text)
    os._exit(0)


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        dist.init_process_group("fake", rank=0, world_size=4)
        cls.addClassCleanup(dist.destroy_process_group)
        cls.graph = sp.load_graph(GRAPHS / "mlp_dynamic.json.gz")
        cls.plan = sp.plan(cls.graph, "dp=2,tp=2", progress=False)

    def parallelize(self, graph, sizes, names):
        mesh = dist.device_mesh.init_device_mesh("cpu", sizes, mesh_dim_names=names)
        with self.assertRaises(sp.Error) as caught:
            sp.torch.parallelize(graph, self.plan, mesh)
        return caught.exception

    def test_another_mesh(self):
        for sizes, names in [
            ((4,), ("dp",)),
            ((2, 2), ("tp", "dp")),
            ((2, 2), ("dp", "cp")),
            ((4, 1), ("dp", "tp")),
        ]:
            error = self.parallelize(self.graph, sizes, names)
            self.assertEqual(error.code, "SP0709")
            self.assertIn("another mesh", error.message)
            self.assertIn("mesh_dim_names", error.help)

    def test_a_plan_for_another_program(self):
        other = sp.load_graph(GRAPHS / "llama3_infer.json.gz")
        error = self.parallelize(other, (2, 2), ("dp", "tp"))
        self.assertEqual(error.code, "SP0708")
        self.assertNotEqual(error.help, "")

    def test_another_torch(self):
        _failures.check_torch()
        _failures.check_torch("2.13.1+cu130")
        for version in ("2.12.0", "2.130.0", "3.0.0a0"):
            with self.assertRaises(sp.Error) as caught:
                _failures.check_torch(version)
            self.assertIn(version, str(caught.exception))
            self.assertIn("pip install", caught.exception.help)

    def test_calls_that_the_program_is_not_exported_for(self):
        x, halves = torch.ones(4, 4), {"a": torch.ones(4)}
        exported = sp.torch.export(Scaled(), (x, halves, 2), {"z": x})
        mesh = dist.device_mesh.init_device_mesh(
            "cpu", (2, 2), mesh_dim_names=("dp", "tp")
        )
        plan = sp.plan(exported, "dp=2,tp=2", progress=False)
        module = sp.torch.parallelize(exported, plan, mesh)
        for args, kwargs, message in [
            ((x, halves), {}, "no value is given for `z`"),
            ((x, halves, 3), {"z": x}, "`times` is 3"),
            ((x, halves, True), {"z": x}, "`times` is True"),
            ((x, x), {"z": x}, "`halves` has another structure"),
            ((x, {"b": x}), {"z": x}, "`halves` has another structure"),
            ((x, {"a": 2.0}), {"z": x}, "`halves` has a float where a tensor is due"),
            ((x, halves), {"z": x, "x": x}, "`x` is given twice"),
            ((x, halves), {"z": x, "w": x}, "`w` is no argument"),
            ((x, halves, 2, x, x), {}, "1 arguments more"),
            ((x, halves), {"z": x[:2]}, "`z` is of shape [2, 4]"),
        ]:
            with self.assertRaises(sp.Error) as caught:
                module(*args, **kwargs)
            self.assertEqual(caught.exception.code, "SP0001")
            self.assertIn(message, caught.exception.message)
            self.assertNotEqual(caught.exception.help, "")
        for args, kwargs in [
            ((x, halves, 2), {"z": x}),
            ((x, halves), {"z": x}),  # the number is the program's
            ((), {"z": x, "halves": halves, "x": x}),
        ]:
            found = module(*args, **kwargs)
            self.assertEqual(found.keys(), {"y", "times", "nothing"})
            self.assertEqual((found["times"], found["nothing"]), (2, None))
            self.assertEqual(found["y"].shape, (4, 4))

    def test_what_is_no_loss_of_a_rank_stays_as_it_is(self):
        with self.assertRaisesRegex(RuntimeError, "shape"):
            with _failures.explained():
                raise RuntimeError("shape [2] is invalid")

    def test_a_rank_that_dies(self):
        program, plan = summing()
        context = torch.multiprocessing.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder:
            ranks = [
                context.Process(
                    target=work, args=(rank, program, plan.to_json(), folder)
                )
                for rank in range(2)
            ]
            for rank in ranks:
                rank.start()
            for rank in ranks:
                rank.join(500)
                self.assertFalse(rank.is_alive(), "it hangs")
            self.assertEqual(ranks[1].exitcode, 3)
            found = pathlib.Path(folder, "found").read_text()
        print(found)
        self.assertRegex(found, "SP091[12] after")
        self.assertIn("from a checkpoint", found)


if __name__ == "__main__":
    unittest.main()
