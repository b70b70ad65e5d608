"""Attention with fewer key heads than ranks: no query moves, forward or backward.

The model is exported with `enable_gqa`, and with keys and values that are repeated for
each query head. $SHARDPROP_PACKAGE is the folder of the built package.
"""

import unittest

import running.package  # noqa: F401
import torch
import torch.nn.functional as F
from torch import nn

import shardprop as sp
import shardprop.torch

BATCH, LENGTH, WIDTH, HEADS = 2, 2048, 4096, 32
SIZE = WIDTH // HEADS


class Attention(nn.Module):
    def __init__(self, key_heads, repeats):
        super().__init__()
        self.key_heads, self.repeats = key_heads, repeats
        # The input of the projections has a gradient because of this parameter.
        self.gain = nn.Parameter(torch.ones(WIDTH))
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, key_heads * SIZE, bias=False)
        self.v = nn.Linear(WIDTH, key_heads * SIZE, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)

    def repeated(self, x):
        groups = HEADS // self.key_heads
        x = x[:, :, None].expand(BATCH, self.key_heads, groups, LENGTH, SIZE)
        return x.reshape(BATCH, HEADS, LENGTH, SIZE)

    def forward(self, x):
        x = x * self.gain
        q, k, v = (
            part(x).unflatten(-1, (-1, SIZE)).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        if self.repeats:
            k, v = self.repeated(k), self.repeated(v)
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=not self.repeats
        )
        return self.o(y.transpose(1, 2).flatten(2)).float().square().mean()


def planned(key_heads, repeats, ranks):
    with torch.device("meta"):
        model = Attention(key_heads, repeats).to(torch.bfloat16)
        x = torch.zeros(BATCH, LENGTH, WIDTH, dtype=torch.bfloat16)
    program = sp.torch.export(model, (x,), mode="train", device="cuda")
    return sp.plan(program, f"tp={ranks}", recipe="megatron=tp", gap=0, progress=False)


def attention(plan):
    """Returns the nodes of attention by phase."""
    found = {n["phase"]: n for n in plan.data["nodes"] if "attention" in n["op"]}
    assert set(found) == {"forward", "backward"}, found.keys()
    return found


def between(plan, node, place):
    """Yields the input and those of the views before it, down to a matmul."""
    producers = {
        output["name"]: n for n in plan.data["nodes"] for output in n["outputs"]
    }
    while not node["op"].startswith("aten.mm."):
        yield node["id"], node["inputs"][place]
        node, place = producers[node["inputs"][place]["from"]], 0


def after(plan, name):
    """Yields the reads of the value and of the results of these reads, up to matmuls."""
    for node in plan.data["nodes"]:
        for read in node["inputs"]:
            if read["from"] != name:
                continue
            yield node, read
            if not node["op"].startswith("aten.mm."):
                for output in node["outputs"]:
                    yield from after(plan, output["name"])


class FewKeyHeads(unittest.TestCase):
    def check(self, plan, repeats):
        nodes = attention(plan)
        forward, backward = nodes["forward"], nodes["backward"]
        # Gradient of the result, query, result and log-sum-exp of the backward.
        heads = [(forward, 0), *((backward, place) for place in (0, 1, 4, 5))]
        for node, place in heads:
            self.assertEqual(node["inputs"][place]["placements"], ["S(1)"])
            self.assertNotIn("copy", node["inputs"][place])
        for node in (forward, backward):
            for name, read in between(plan, node, 0):
                self.assertNotIn("copy", read, name)
        # The gradient of the query is checked up to the matmuls of its projection.
        reads = list(after(plan, backward["outputs"][0]["name"]))
        matmuls = [node["id"] for node, _ in reads if node["op"].startswith("aten.mm.")]
        self.assertEqual(len(matmuls), 2)
        for node, read in reads:
            self.assertNotIn("copy", read, node["id"])
        gradients = [output["placements"] for output in backward["outputs"]]
        keys = ["S(1)"] if repeats else ["P(sum)"]
        self.assertEqual(gradients, [["S(1)"], keys, keys])

    def test_no_query_moves(self):
        for key_heads in (2, 4):
            for ranks in (8, 16):
                for repeats in (False, True):
                    with self.subTest(key_heads=key_heads, ranks=ranks, repeats=repeats):
                        self.check(planned(key_heads, repeats, ranks), repeats)


if __name__ == "__main__":
    unittest.main()
