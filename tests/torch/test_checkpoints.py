"""Checkpoints of planned modules are read by other plans on other meshes.

A module on 2x2 is saved by torch.distributed.checkpoint, and loaded by plans for
tp=4 and dp=3: every rank then holds its part of the unsharded weights. Layouts
are pinned, odd shard orders and sizes that do not divide among them.
$SHARDPROP_PACKAGE is the folder of the built package.
"""

import pathlib
import tempfile
import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import shardprop as sp
import shardprop.torch
from running.ranks import run_ranks
from shardprop.torch import _layout

# `SAVED` has a mesh, and the layout of each layer's weight on it.
SAVED = ("dp=2,tp=2", {"in_order": "S(0),S(0)", "swapped": "S(0)@1,S(0)@0",
                       "crossed": "S(1),S(0)", "uneven": "R,S(0)",
                       "odd": "S(0)@1,S(0)@0"})
LOADED = [
    ("dp=2,tp=2", {"in_order": "S(0)@1,S(0)@0", "swapped": "S(1),S(0)",
                   "crossed": "S(1)@1,S(1)@0", "uneven": "S(0),R",
                   "odd": "S(0),S(0)"}),
    ("tp=4", {"in_order": "S(1)", "swapped": "S(0)", "crossed": "R",
              "uneven": "S(0)", "odd": "S(0)"}),
    ("dp=3", {"in_order": "S(0)", "swapped": "R", "crossed": "S(1)",
              "uneven": "S(1)", "odd": "S(0)"}),
]


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.in_order = torch.nn.Linear(8, 8)
        self.swapped = torch.nn.Linear(8, 16)
        self.crossed = torch.nn.Linear(16, 12)
        self.uneven = torch.nn.Linear(12, 7)
        self.odd = torch.nn.Linear(7, 5)
        self.register_buffer("scale", torch.arange(5.0))

    def forward(self, x):
        for name in ("in_order", "swapped", "crossed", "uneven", "odd"):
            x = self.get_submodule(name)(x)
        return x * self.scale


def planned(program, mesh, layouts):
    pins = {f"{layer}.weight": layout for layer, layout in layouts.items()}
    return sp.plan(
        program, mesh, pins=pins, memory=None, execution="eager", progress=False
    )


def parallel(program, plan_json):
    plan = sp.Plan.from_json(plan_json)
    mesh = dist.device_mesh.init_device_mesh(
        "cpu", tuple(plan.mesh.values()), mesh_dim_names=tuple(plan.mesh)
    )
    return sp.torch.parallelize(program, plan, mesh)


def save(program, plan_json, folder):
    module = parallel(program, plan_json)
    missing = sp.torch.load_weights(module, Layers())
    assert not missing, missing
    dcp.save(module.state_dict(), checkpoint_id=folder)


def load(program, plan_json, folder):
    """Returns the names of all tensors, and of the tensors that differ from
    this rank's part."""
    module = parallel(program, plan_json)
    state = module.state_dict()
    dcp.load(state, checkpoint_id=folder)
    module.load_state_dict(state)
    wanted = Layers().state_dict()
    wrong = []
    for entry in module._shardings["inputs"]:
        name = entry["name"]
        if name not in wanted:
            continue
        part = _layout.local_part(wanted[name], entry, module._mesh, module._index)
        held = module.state_dict()[name].to_local()
        if not torch.equal(held, part):
            wrong.append(f"{name} {entry['placements']} {entry['shard_order']}")
    return sorted(state), wrong


def load_again(program, jobs, folder):
    return [load(program, plan_json, folder) for plan_json in jobs]


class Checkpoints(unittest.TestCase):
    def test_other_plans_on_other_meshes_read_them(self):
        model = Layers()
        program = sp.torch.to_json(sp.torch.export(model, (torch.randn(6, 8),)))
        mesh, layouts = SAVED
        plan = planned(program, mesh, layouts)
        self.assertEqual(plan.placements("swapped.weight"), ["S(0)@1", "S(0)@0"])
        with tempfile.TemporaryDirectory() as folder:
            run_ranks(4, save, program, plan.to_json(), folder)
            self.assertTrue((pathlib.Path(folder) / ".metadata").exists())
            by_ranks = {}
            for mesh, layouts in LOADED:
                plan = planned(program, mesh, layouts)
                ranks = 3 if mesh == "dp=3" else 4
                by_ranks.setdefault(ranks, []).append(plan.to_json())
            read = 0
            for ranks, jobs in by_ranks.items():
                for rank, found in enumerate(
                    run_ranks(ranks, load_again, program, jobs, folder)
                ):
                    for names, wrong in found:
                        self.assertEqual(names, sorted(model.state_dict()))
                        self.assertEqual(wrong, [], f"rank {rank} of {ranks}")
                        read += len(names)
            print(f"{read} parts of tensors read, all equal")


if __name__ == "__main__":
    unittest.main()
