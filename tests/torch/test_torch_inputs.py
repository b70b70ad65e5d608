"""Objects of PyTorch as inputs of the functions that need no PyTorch.

$SHARDPROP_PACKAGE is the folder of the built package.
"""

import pathlib
import unittest

import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

import shardprop as sp
import shardprop._texts
from shardprop.torch import _layout

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPH = ROOT / "examples/graphs/tiny/llama3_train.json.gz"


class Texts(unittest.TestCase):
    def test_dtypes(self):
        for name, dtype in _layout.DTYPES.items():
            self.assertEqual(sp._texts.dtype_text(dtype), name)
            self.assertEqual(sp._texts.dtype_text(str(dtype)), name)
            self.assertEqual(sp._texts.dtype_text(name), name)

    def test_placements(self):
        layout = (Shard(1), Replicate(), Partial("max"), _StridedShard(0, split_factor=4))
        self.assertEqual(sp._texts.layout_text(layout), "S(1),R,P(max),SS(0,4)")
        self.assertEqual(sp._texts.layout_text(Shard(0)), "S(0)")
        for wrong in (torch.float32, 3, None):
            with self.assertRaisesRegex(sp.Error, "not a placement"):
                sp._texts.layout_text([wrong])

    def test_operators(self):
        aten = torch.ops.aten
        self.assertEqual(sp._texts.operator_text(aten.mm.default), "aten.mm.default")
        self.assertEqual(
            sp._texts.operator_text(aten.detach_copy.out), "aten.detach_copy.out"
        )
        with self.assertRaises(sp.Error) as caught:
            sp._texts.operator_text(aten.mm)
        self.assertIn("several overloads", caught.exception.message)
        self.assertIn("aten.mm.default", caught.exception.notes)


class Functions(unittest.TestCase):
    def test_redistribute(self):
        self.assertEqual(
            sp.redistribute(
                "dp=2,tp=2", torch.Size([4, 4]), torch.bfloat16, (Replicate(), Replicate()), (Shard(0), Replicate())
            ),
            sp.redistribute("dp=2,tp=2", (4, 4), "bf16", "R,R", "S(0),R"),
        )

    def test_propagate(self):
        found = sp.propagate(
            "tp=2",
            torch.ops.aten._to_copy.default,
            ["f32[16,8] S(1)"],
            {
                "dtype": torch.bfloat16,
                "device": torch.device("cpu"),
                "memory_format": torch.contiguous_format,
            },
        )
        self.assertEqual(found.outputs, ("bf16[16,8] S(1)",))

    def test_pins(self):
        plan = sp.plan(
            GRAPH,
            "dp=2,tp=2",
            pins={"lm_head.weight": (Shard(0), Replicate())},
            progress=False,
        )
        self.assertEqual(plan.placements("lm_head.weight"), ["S(0)", "R"])


class Meshes(unittest.TestCase):
    def test_device_meshes(self):
        dist.init_process_group("fake", rank=0, world_size=4)
        self.addCleanup(dist.destroy_process_group)
        names = ("dp", "tp")
        mesh = DeviceMesh("cpu", torch.arange(4).view(2, 2), mesh_dim_names=names)
        self.assertEqual(sp.plan(GRAPH, mesh, progress=False).mesh, {"dp": 2, "tp": 2})
        with FakeTensorMode():
            found = sp.redistribute(mesh, (4, 4), "f32", "R,R", "S(0),R")
        self.assertEqual(len(found.steps), 1)
        # Its text has no order of ranks: plans would price neighbours wrongly.
        permuted = DeviceMesh("cpu", [[0, 2], [1, 3]], mesh_dim_names=names)
        with self.assertRaises(sp.Error) as caught:
            sp.plan(GRAPH, permuted, progress=False)
        self.assertIn("do not ascend", caught.exception.message)


if __name__ == "__main__":
    unittest.main()
