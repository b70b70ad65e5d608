"""Compares the activations of compiled plans with those of PyTorch's partitioner: the
bytes that the backward phase gets from the forward phase.

torch.compile traces each tiny training model, with the decompositions of its compiler,
and its partitioner says which values the backward graph gets from the forward graph.
Parameters, buffers and the inputs of the model do not count. shardprop plans the
example graph of the same model on one rank. Two of the tiny graphs are left out: the
compiler runs the attention of GPT-2 as another operator than the graph has, and it
computes the results of a BatchNorm again from its statistics, where we keep them.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import partitioners
from torch._inductor.decomposition import select_decomp_table

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "python/shardprop/torch")]

from kept_bytes import VIEWS, base_name, values_of_plan  # noqa: E402
from models import MODELS  # noqa: E402

SHARDPROP = os.environ.get("SHARDPROP_BIN", "build/release/tools/shardprop")
TOLERANCE = 0.10
GRAPHS = {
    "llama3_tiny": "llama3_train",
    "deepseek_moe_tiny": "deepseek_moe_train",
    "t5_tiny": "t5_train",
}


def torch_keeps(name):
    """Returns the bytes and the kept values with theirs."""
    kept = {}

    def partition(joint, inputs, *, num_fwd_outputs, **others):
        allowed = {"static_lifetime_input_indices"}
        forward, backward = partitioners.min_cut_rematerialization_partition(
            joint,
            inputs,
            num_fwd_outputs=num_fwd_outputs,
            **{k: v for k, v in others.items() if k in allowed},
        )
        for node in forward.graph.output_node().args[0][num_fwd_outputs:]:
            while node.op == "call_function" and base_name(node.target) in VIEWS:
                node = node.args[0]
            value = node.meta["val"]
            if node.op == "call_function" and isinstance(value, torch.Tensor):
                kept[node.name] = value.numel() * value.dtype.itemsize
        return forward, backward

    built = MODELS[name](True)
    model, args = built if isinstance(built, tuple) else (built.module, built.args)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    torch._dynamo.reset()
    compiled = torch.compile(
        model,
        backend=aot_autograd(
            fw_compiler=lambda graph, _: graph,
            bw_compiler=lambda graph, _: graph,
            partition_fn=partition,
            decompositions=select_decomp_table(),
        ),
        fullgraph=True,
    )
    compiled(*args)
    return kept


def shardprop_keeps(graph):
    done = subprocess.run(
        [SHARDPROP, "explain", str(ROOT / f"examples/graphs/tiny/{graph}.json.gz"),
         "--mesh", "x=1", "--memory", "none", "--optimizer", "none", "--recompute",
         "none", "--execution", "compiled", "--format", "json"],
        check=True, capture_output=True, text=True)
    return values_of_plan(json.loads(done.stdout))


class KeptValues(unittest.TestCase):
    def test_kept_bytes(self):
        for model, graph in GRAPHS.items():
            with self.subTest(model=model):
                wanted = torch_keeps(model)
                found = shardprop_keeps(graph)
                if os.environ.get("SHARDPROP_LIST"):
                    print(model, "torch", sorted((b, n) for n, b in wanted.items()))
                    print(model, "shardprop", sorted((b, n) for n, b in found.items()))
                print(f"{model}: torch keeps {sum(wanted.values())} bytes, "
                      f"shardprop {sum(found.values())}")
                self.assertAlmostEqual(
                    sum(found.values()) / sum(wanted.values()), 1, delta=TOLERANCE)


if __name__ == "__main__":
    unittest.main()
