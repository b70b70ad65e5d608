"""verify() names a bug of torchtitan 0.3.0 in its released code.

GptOssGroupedExperts reads the tensor parallel degree from DTensor parameters only. Under
torchtitan's default backend the parameters are plain tensors, so each rank adds the
whole output bias (pytorch/torchtitan#4245). The test is skipped unless torchtitan 0.3.0
can be imported; SHARDPROP_TORCHTITAN may name the folder that has it.
"""

import importlib.metadata
import os
import sys
import unittest

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))
if os.environ.get("SHARDPROP_TORCHTITAN"):
    sys.path.insert(0, os.environ["SHARDPROP_TORCHTITAN"])

import torch
from own_code import moves
from torch import nn

import shardprop as sp

try:
    from torchtitan.models.gpt_oss.moe import GptOssGroupedExperts
except Exception as missing:
    reason = f"torchtitan cannot be imported: {type(missing).__name__}: {missing}"
    GptOssGroupedExperts = None
else:
    version = importlib.metadata.version("torchtitan")
    reason = f"torchtitan is {version}, the bug is in 0.3.0"
    if version != "0.3.0":
        GptOssGroupedExperts = None

EXPERTS, WIDTH, HIDDEN = 2, 16, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        config = GptOssGroupedExperts.Config(
            dim=WIDTH, hidden_dim=HIDDEN, num_experts=EXPERTS
        )
        self.experts = GptOssGroupedExperts(config)
        for parameter in self.experts.parameters():
            nn.init.normal_(parameter, std=0.3)
        self.group = None

    def forward(self, x, counts):
        if self.group is None:
            return self.experts(x, counts)
        return moves.reduce(
            self.experts(moves.copy(x, self.group), counts), self.group
        )


def parallelize(model, mesh, scales_bias=False):
    """Shards the hidden dim as torchtitan's tensor parallelism does."""
    model.group = group = mesh.get_group("tp")
    experts = model.experts
    moves.shard(experts.mlp1_weight_EGD, 1, group)
    moves.shard(experts.mlp1_bias_EG, 1, group)
    moves.shard(experts.mlp2_weight_EDF, 2, group)
    if scales_bias:
        bias = experts.mlp2_bias_ED
        bias.data = bias.data / group.size()


def step(model, given):
    with torch.no_grad():
        return model(*given).float()


def batch():
    torch.manual_seed(1)
    return torch.randn(8, WIDTH), torch.tensor([3, 5])


@unittest.skipIf(GptOssGroupedExperts is None, f"SKIPPED: {reason}")
class Released(unittest.TestCase):
    def test_bias_counts_degree_times(self):
        report = sp.torch.verify(Block, parallelize, step, batch, "tp=2")
        self.assertIsNotNone(report.first)
        self.assertEqual((report.first.kind, report.first.name), ("output", "experts"))
        text = "`experts.mlp2_bias_ED` parameter, which it contains 2 times"
        self.assertIn(text, " ".join(report.first.notes))

    def test_other_values_are_right(self):
        """With a bias that is scaled by hand, only the bias differs."""
        report = sp.torch.verify(
            Block, lambda model, mesh: parallelize(model, mesh, True), step, batch, "tp=2"
        )
        names = {(value.kind, value.name) for value in report.wrong}
        bias = "experts.mlp2_bias_ED"
        self.assertLessEqual(
            names, {("parameter", bias), ("updated parameter", bias)}, f"{report}"
        )


if __name__ == "__main__":
    unittest.main()
