"""shardprop.torch.count(): what a plan predicts against what its ranks send.

One process stands for a rank of any mesh: PyTorch's fake process group runs no
collective, and under FakeTensorMode nothing is allocated. $SHARDPROP_PACKAGE is
the folder of the built package. SHARDPROP_FULL=1 counts Llama 3 8B on 64 ranks.
"""

import math
import os
import pathlib
import unittest

import running.interpreted  # noqa: F401
import running.package  # noqa: F401
import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from torch._subclasses.fake_tensor import FakeTensorMode

import shardprop as sp
import shardprop.torch
from running.models import MODELS

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPHS = ROOT / "examples/graphs"
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")
FULL = os.environ.get("SHARDPROP_FULL") == "1"

# Graph, mesh, and which of its ranks this process is.
CASES = [
    ("llama3_train", "dp=2,tp=2", 0),
    ("llama3_train_cuda", "dp=2,tp=2", 3),
    ("gpt2_train", "tp=3", 1),
    ("resnet_train", "dp=3", 2),
    ("mixtral_infer", "dp=2,tp=2", 0),
    ("mlp_dynamic", "dp=8,tp=128", 1000),
]


def planned(graph, mesh, **options):
    graph = sp.load_graph(graph)
    return graph, sp.plan(graph, mesh, progress=False, **options)


class Simulated:
    """A planned module on one rank of a mesh that is not there."""

    def __init__(self, graph, plan, rank):
        sizes = tuple(plan.mesh.values())
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", rank=rank, world_size=math.prod(sizes))
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        mesh = dist.device_mesh.init_device_mesh(
            "cpu", sizes, mesh_dim_names=tuple(plan.mesh)
        )
        with self.mode:
            self.module = sp.torch.parallelize(graph, plan, mesh)

    @property
    def graph(self):
        return self.module.program.graph_module.graph

    def __call__(self):
        with self.mode:
            return self.module(
                *(
                    torch.empty(shape, dtype=dtype)
                    for shape, dtype in self.module.input_metas
                )
            )


class Exchanges(unittest.TestCase):
    """Tests the bytes that a rank sends to exchange columns for rows, and
    PyTorch's padding."""

    def bytes_of(self, shape):
        step = sp.torch._count._steps.Step(
            {"dp": 2, "tp": 2},
            shape,
            {
                "collective": "all_to_all",
                "mesh_dims": ["tp"],
                "dtype": "f32",
                "src": ["S(1)", "S(1)"],
                "dst": ["S(1)", "S(0)"],
            },
        )
        ranks = range(4)
        exact = [step.bytes_of_rank(rank) for rank in ranks]
        return exact, [step.padded_bytes_of_rank(rank) for rank in ranks]

    def test_even_shards_are_sent_as_they_are(self):
        self.assertEqual(self.bytes_of([10, 8]), ([40] * 4, [40] * 4))

    def test_uneven_shards_are_padded_to_the_largest_of_their_group(self):
        # Columns 2, 1, 1 and 1: half of the ten rows of each is sent.
        self.assertEqual(self.bytes_of([10, 5]), ([40, 20, 20, 20], [40, 40, 20, 20]))


class Counting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.graph, cls.plan = planned(
            GRAPHS / "tiny/llama3_train.json.gz", "dp=2,tp=2", topology=TOPOLOGY
        )

    def assert_all_matched(self, counted, plan):
        self.assertTrue(counted.ok, str(counted))
        planned = plan.summary["collectives"]
        wanted = {k: n for k, n in planned.items() if n and k != "slice"}
        self.assertEqual(counted.kinds, wanted)
        self.assertEqual(counted.predicted_bytes, plan.summary["bytes_per_rank"])
        self.assertEqual(counted.bytes, counted.predicted_bytes_of_this_rank)

    def test_every_collective_and_byte(self):
        for name, mesh, rank in CASES:
            with self.subTest(graph=name, mesh=mesh):
                graph, plan = planned(
                    GRAPHS / f"tiny/{name}.json.gz", mesh, topology=TOPOLOGY
                )
                module = Simulated(graph, plan, rank)
                with sp.torch.count(plan) as counted:
                    module()
                self.assert_all_matched(counted, plan)
                print(f"{name} on {mesh}, rank {rank}: {counted}")

    def test_one_rank_sends_what_is_predicted_of_the_busiest(self):
        graph, plan = planned(
            GRAPHS / "tiny/resnet_train.json.gz",
            "dp=2,tp=2",
            topology=TOPOLOGY,
        )
        most = {}
        for rank in range(4):
            module = Simulated(graph, plan, rank)
            with sp.torch.count(plan) as counted:
                module()
            self.assert_all_matched(counted, plan)
            for match in counted.matched:
                sent = most.get(match.predicted, 0)
                most[match.predicted] = max(sent, match.executed.bytes)
        self.assertIn("all_to_all", {one.kind for one in most})
        for predicted, sent in most.items():
            self.assertEqual(sent, predicted.bytes, str(predicted))

    def test_calls_add_up_and_others_are_extra(self):
        # Rank 0 sends nothing in a permutation of ranks, rank 1 is a busiest one.
        module = Simulated(self.graph, self.plan, 1)
        with sp.torch.count(self.plan) as counted:
            module()
            module()
        self.assertTrue(counted.ok)
        self.assertEqual(counted.calls, 2)
        self.assertEqual(counted.bytes, 2 * self.plan.summary["bytes_per_rank"])
        with sp.torch.count(self.plan) as counted:
            module()
            dist.all_reduce(torch.ones(3))
        self.assertFalse(counted.ok)
        self.assertEqual(len(counted.extra), 1)
        self.assertIn("outside the program", str(counted))

    def test_without_a_call_everything_is_missing(self):
        with sp.torch.count(self.plan) as counted:
            pass
        self.assertFalse(counted.ok)
        self.assertEqual(counted.missing, counted.predicted)

    def collective(self, module, name):
        return next(
            node
            for node in module.graph.nodes
            if name in str(node.target) and "copy" in node.meta["custom"]["shardprop"]
        )

    def test_a_collective_that_is_left_out_is_missing(self):
        module = Simulated(self.graph, self.plan, 0)
        node = self.collective(module, "all_reduce")
        [wait] = node.users
        copy = node.meta["custom"]["shardprop"]["copy"]
        wait.replace_all_uses_with(node.args[0])
        module.graph.erase_node(wait)
        module.graph.erase_node(node)
        module.module.program.graph_module.recompile()
        with sp.torch.count(self.plan) as counted:
            module()
        self.assertEqual(len(counted.missing), 1)
        self.assertEqual(counted.missing[0].copy, copy)
        self.assertEqual(counted.missing[0].kind, "all_reduce")
        self.assertEqual(counted.extra, [])
        self.assertIn(f"missing  {counted.missing[0]}", str(counted))

    def test_a_collective_that_is_added_is_extra(self):
        module = Simulated(self.graph, self.plan, 0)
        node = self.collective(module, "all_reduce")
        [wait] = node.users
        with module.graph.inserting_after(wait):
            again = module.graph.node_copy(node, lambda n: n)
            again.args = (wait, *node.args[1:])
        wait.replace_all_uses_with(again, lambda user: user is not again)
        module.module.program.graph_module.recompile()
        with sp.torch.count(self.plan) as counted:
            module()
        self.assertEqual(counted.missing, [])
        self.assertEqual(len(counted.extra), 1)
        self.assertEqual(
            counted.extra[0].copy, node.meta["custom"]["shardprop"]["copy"]
        )

    def test_other_bytes_or_another_group_do_not_match(self):
        module = Simulated(self.graph, self.plan, 0)
        node = self.collective(module, "all_reduce")
        other = {"shardprop_dp": "shardprop_tp"}.get(node.args[-1], "shardprop_dp")
        node.args = (*node.args[:-1], other)
        module.module.program.graph_module.recompile()
        with sp.torch.count(self.plan) as counted:
            module()
        self.assertEqual(len(counted.missing), 1)
        self.assertEqual([one.group for one in counted.extra], [other])

    @unittest.skipUnless(FULL, "SHARDPROP_FULL=1")
    def test_llama3_8b_on_64_ranks(self):
        graph, plan = planned(GRAPHS / "llama3_8b_train.json.gz", "dp=8,tp=8")
        for rank in (0, 9, 63):
            module = Simulated(graph, plan, rank)
            with sp.torch.count(plan) as counted:
                module()
            self.assert_all_matched(counted, plan)
            print(f"Llama 3 8B on dp=8,tp=8, rank {rank}: {counted} {counted.kinds}")

    @unittest.skipUnless(FULL, "SHARDPROP_FULL=1")
    def test_llama_405b_on_1024_ranks(self):
        with torch.device("meta"):
            model, args = MODELS["llama3_405b"](True)
        exported = sp.torch.export(model, args, mode="train")
        graph, plan = planned(exported, "dp=128,tp=8", memory="none", threads=2)
        for rank in (0, 700):
            module = Simulated(graph, plan, rank)
            with sp.torch.count(plan) as counted:
                module()
            self.assert_all_matched(counted, plan)
            print(f"405B on dp=128,tp=8 ({plan.status}), rank {rank}: {counted}")


if __name__ == "__main__":
    unittest.main()
