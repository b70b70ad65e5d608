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

from models import MODELS  # noqa: E402

SHARDPROP = os.environ.get("SHARDPROP_BIN", "build/release/tools/shardprop")
TOLERANCE = 0.10
BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}
GRAPHS = {
    "llama3_tiny": "llama3_train",
    "deepseek_moe_tiny": "deepseek_moe_train",
    "t5_tiny": "t5_train",
}
VIEWS = {
    "alias", "view", "_unsafe_view", "permute", "expand", "squeeze", "unsqueeze",
    "slice", "select", "split", "t", "transpose", "detach", "unbind", "as_strided",
    "reshape",
}


def base_name(target):
    return str(target).split(".")[1] if "." in str(target) else str(target)


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
    nodes = json.loads(done.stdout)["nodes"]
    last = max(i for i, node in enumerate(nodes) if node["phase"] == "forward")
    made = {}
    for i, node in enumerate(nodes):
        for output in node["outputs"]:
            made[output["name"]] = (i, node, output)
    kept = {}
    for node in nodes[last + 1 :]:
        for read in node["inputs"]:
            name = read["from"]
            while name in made and base_name(made[name][1]["op"]) in VIEWS:
                name = made[name][1]["inputs"][0]["from"]
            if name not in made or made[name][0] > last:
                continue
            output = made[name][2]
            size = BYTES.get(output["dtype"], 1)
            for length in output["shape"]:
                size *= length
            kept[name] = size
    return kept


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
