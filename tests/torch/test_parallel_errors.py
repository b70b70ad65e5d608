"""Errors of planned modules are reported with a remedy, and no call hangs.

$SHARDPROP_PACKAGE is the folder of the built package.
"""

import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from running.package import PACKAGE
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401

import shardprop as sp
import shardprop.torch
from shardprop.torch import _failures
from shardprop.torch._release import check_torch

_c10d_functional = torch.ops._c10d_functional

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
    """Takes and returns structures, and values that are not tensors."""

    def forward(self, x, halves, times=1, *, z):
        return {"y": x * times + halves["a"] + z, "times": times, "nothing": None}


def summing():
    program = sp.torch.to_json(sp.torch.export(Sum(), (torch.ones(4, 4),)))
    plan = sp.plan(
        program,
        "tp=2",
        pins={"weight": "S(0)", "relu": "R", "x": "S(1)"},
        memory=None,
        execution="eager",
        progress=False,
    )
    assert sum(plan.summary["collectives"].values()) > 0
    return program, plan


SECONDS = 8


def work(rank, program, plan_json, folder, dies):
    """Rank 1 dies, or is late, between two calls; what rank 0 gets goes into a file."""
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(os.path.join(folder, "store"), 2),
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=60 if dies else SECONDS),
    )
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    module = sp.torch.parallelize(program, sp.Plan.from_json(plan_json), mesh)
    x = torch.ones(4, 4)
    module(x)
    if rank == 1:
        if not dies:
            time.sleep(4 * SECONDS)
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
        cls.plan = sp.plan(cls.graph, "dp=2,tp=2", execution="eager", progress=False)

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

    def test_releases_of_torch(self):
        for version in ("2.12.1", "2.13.1+cu130", "2.14.0a0+git1", torch.__version__):
            check_torch(version)
        for version in ("2.11.0", "2.15.0", "2.130.0", "2.1", "3.0.0a0"):
            with self.assertRaises(sp.Error) as caught:
                check_torch(version)
            self.assertEqual(caught.exception.code, "SP0709")
            self.assertIn("2.12, 2.13 and 2.14", caught.exception.message)
            self.assertIn(version, str(caught.exception))
            self.assertIn("torch>=2.12,<2.15", caught.exception.help)

    def test_another_release_is_refused_when_it_is_imported(self):
        """Planning goes on, and the help is true: a .pt2 file is planned."""
        exported = sp.torch.export(Sum(), (torch.ones(4, 4),))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "sum.pt2")
            torch.export.save(exported, path)
            pathlib.Path(folder, "torch.py").write_text("__version__ = '2.11.0+cpu'\n")
            program = (
                "import shardprop as sp\n"
                f"print(sp.plan({str(path)!r}, 'tp=2', gap=0, progress=False).status)\n"
                "try: sp.torch\n"
                "except sp.Error as error: print(error.code)\n"
                "import shardprop.torch\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": f"{folder}:{PACKAGE}"},
            )
        self.assertEqual(done.stdout.split(), ["optimal", "SP0709"], done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("2.12, 2.13 and 2.14", done.stderr)

    def test_calls_that_the_program_is_not_exported_for(self):
        x, halves = torch.ones(4, 4), {"a": torch.ones(4)}
        exported = sp.torch.export(Scaled(), (x, halves, 2), {"z": x})
        mesh = dist.device_mesh.init_device_mesh(
            "cpu", (2, 2), mesh_dim_names=("dp", "tp")
        )
        plan = sp.plan(exported, "dp=2,tp=2", execution="eager", progress=False)
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

    def test_errors_of_the_program_stay_as_they_are(self):
        """Words that backends use tell nothing: who raised the error does."""
        for text in (
            "shape [2] is invalid",
            "CUDA error: the launch timed out and was terminated",
            "the inductor found no nccl, and no gloo",
            "broken pipe: connection reset by remote peer, watchdog",
        ):
            for kind in (RuntimeError, torch.AcceleratorError):
                with self.assertRaises(kind) as caught:
                    with _failures.explained():
                        raise kind(text)
                self.assertNotIsInstance(caught.exception, sp.Error)

        class Refusing(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                raise RuntimeError("nccl timed out")

        module = self.summing_module()
        with self.assertRaisesRegex(RuntimeError, "^nccl timed out$"), Refusing():
            module(torch.ones(4, 4))

    def summing_module(self):
        program, plan = summing()
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        return sp.torch.parallelize(program, plan, mesh)

    def test_errors_of_collectives_are_explained(self):
        for kind in (dist.DistBackendError, dist.DistNetworkError, dist.DistStoreError):
            with self.assertRaises(sp.Error) as caught, _failures.explained():
                raise kind("no words that tell")
            self.assertEqual(caught.exception.code, "SP0912")
        # Gloo's errors have no type: they come out of what waits.
        for wait in (_c10d_functional.wait_tensor, _c10d_functional.wait_tensor.default):
            with self.assertRaises(sp.Error) as caught, _failures.explained():
                wait(3, 4, 5)
            self.assertEqual(caught.exception.code, "SP0912")

    def found_by_the_other_rank(self, dies):
        program, plan = summing()
        context = torch.multiprocessing.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder:
            ranks = [
                context.Process(
                    target=work, args=(rank, program, plan.to_json(), folder, dies)
                )
                for rank in range(2)
            ]
            for rank in ranks:
                rank.start()
            for rank in ranks:
                rank.join(500)
                self.assertFalse(rank.is_alive(), "it hangs")
            self.assertEqual(ranks[1].exitcode, 3)
            return pathlib.Path(folder, "found").read_text()

    def test_a_rank_that_dies(self):
        found = self.found_by_the_other_rank(dies=True)
        self.assertRegex(found, "SP0912 after")
        self.assertIn("from a checkpoint", found)

    def test_a_rank_that_is_late(self):
        found = self.found_by_the_other_rank(dies=False)
        self.assertRegex(found, "SP0911 after")
        self.assertIn("did not come", found)


if __name__ == "__main__":
    unittest.main()
