"""Ranks that do not agree get an error that names them, and none of them waits.

Four processes of gloo go through all cases together. $SHARDPROP_PACKAGE is the
folder of the built package.
"""

import datetime
import pathlib
import time
import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
from running.ranks import run_ranks
from torch.distributed import distributed_c10d

import shardprop as sp
import shardprop.torch
from shardprop.torch import _agreement

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")
RANKS = 4


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(16, 32, bias=False)
        self.b = torch.nn.Linear(32, 16, bias=False)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))).square().mean()


def exported_model():
    return sp.torch.export(Model(), (torch.ones(8, 16),), mode="train", device="cpu")


def caught(call, *args, **kwargs):
    """Returns code and text of the error that a call raises, and its seconds."""
    began = time.monotonic()
    try:
        call(*args, **kwargs)
    except Exception as error:
        code = getattr(error, "code", type(error).__name__)
        return code, str(error), time.monotonic() - began
    return None, "", time.monotonic() - began


def timeout_of(group):
    return group._get_backend(torch.device("cpu")).options._timeout


def on_rank(plans):
    rank = dist.get_rank()
    # As a user's init_process_group(timeout=) does.
    distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=300), dist.group.WORLD)
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    exported = exported_model()
    found = {}
    own, other = (sp.Plan.from_json(plan) for plan in plans)

    found["plans differ"] = caught(
        sp.torch.parallelize, exported, other if rank == 3 else own, mesh
    )
    found["a rank fails"] = caught(
        sp.torch.parallelize, "absent.pt2" if rank == 2 else exported, own, mesh
    )
    found["planning fails"] = caught(sp.torch.plan, exported, mesh, memory="-3")

    # The others never look at a graph.
    graph = exported if rank == 0 else None
    plan = sp.torch.plan(graph, mesh, topology=TOPOLOGY, optimizer="adamw")
    found["plan"] = plan.to_json(), plan.interrupted
    module = sp.torch.parallelize(exported, plan, mesh)
    torch.manual_seed(0)
    sp.torch.load_weights(module, Model())
    with sp.torch.count(plan) as counted:
        loss = module(torch.ones(8, 16))
    found["count"] = counted.ok, str(counted)
    found["gradients"] = {
        name: (value.grad.placements == value.placements, value.grad.full_tensor())
        for name, value in module.named_parameters()
    }
    found["loss"] = loss.item()
    groups = [mesh.get_group("tp")]
    groups += [g for g in distributed_c10d._world.pg_map if g is not dist.group.WORLD]
    found["timeouts"] = {timeout_of(group).total_seconds() for group in groups}

    # A rank that does not come.
    distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=3), dist.group.WORLD)
    if rank != 3:
        found["late"] = caught(sp.torch.parallelize, exported, plan, mesh)
    distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=300), dist.group.WORLD)
    return found


class Agreement(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        exported = exported_model()
        plans = [
            sp.plan(
                exported, "dp=2,tp=2", topology=TOPOLOGY, pins=pins, progress=False
            ).to_json()
            for pins in ({"a.weight": "R,S(0)"}, {"a.weight": "R,S(1)"})
        ]
        cls.found = run_ranks(RANKS, on_rank, plans)

    def every(self, case):
        return [found[case] for found in self.found]

    def test_different_plans(self):
        for code, text, _ in self.every("plans differ"):
            self.assertEqual(code, "SP0913", text)
            self.assertIn("the ranks have different plans", text)
            self.assertRegex(text, r"plan \w{16}: ranks 0\.\.2\n")
            self.assertRegex(text, r"plan \w{16}: rank 3\n")
            self.assertIn("sp.torch.plan(exported, device_mesh)", text)

    def test_a_rank_that_fails(self):
        for rank, (code, text, _) in enumerate(self.every("a rank fails")):
            self.assertEqual(code, "SP0401" if rank == 2 else "SP0912", text)
            self.assertIn("absent.pt2", text)
            if rank != 2:
                self.assertIn("parallelize() failed on rank 2", text)

    def test_planning_that_fails(self):
        texts = set()
        for code, text, _ in self.every("planning fails"):
            self.assertEqual(code, "SP0001", text)
            texts.add(text)
        self.assertEqual(len(texts), 1)

    def test_one_plan_for_all(self):
        self.assertEqual(len(set(self.every("plan"))), 1)

    def test_a_plan_with_an_optimizer_runs(self):
        torch.manual_seed(0)
        model = Model()
        loss = model(torch.ones(8, 16))
        loss.backward()
        for found in self.found:
            self.assertTrue(found["count"][0], found["count"][1])
            self.assertAlmostEqual(found["loss"], loss.item(), places=6)
            for name, value in model.named_parameters():
                has_layout, gradient = found["gradients"][name]
                self.assertTrue(has_layout, name)
                torch.testing.assert_close(gradient, value.grad)

    def test_groups_inherit_the_timeout(self):
        for timeouts in self.every("timeouts"):
            self.assertEqual(timeouts, {300.0})

    def test_a_rank_that_does_not_come(self):
        for found in self.found[:3]:
            code, text, seconds = found["late"]
            self.assertEqual(code, "SP0911", text)
            self.assertIn("rank 3 did not come to parallelize() in time", text)
            self.assertLess(seconds, 120)

    def test_ranks_in_words(self):
        for ranks, text in [
            ([3], "rank 3"),
            ([0, 1, 2, 5], "ranks 0..2, 5"),
            (range(0, 40, 2), "ranks 0, 2, 4, 6, 8, 10, 12, 14, ..."),
        ]:
            self.assertEqual(_agreement._ranks_text(list(ranks)), text)


if __name__ == "__main__":
    unittest.main()
