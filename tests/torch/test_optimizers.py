#!/usr/bin/env python3
"""Optimizers of torch on FSDP2 over tensor parallelism, with our propagator.

The ranks are four processes of gloo on a 2x2 mesh. Weights and biases are stored as FSDP2 stores
them: `S(0)@1,S(0)@0`, `S(0),S(1)` and `S(0),R`, in one list. Each optimizer makes two
steps with stock DTensor and with our propagator. The steps move no tensor that stock
does not move, and the parameters are equal. Needs the Python package of a build,
named by $SHARDPROP_PACKAGE.
"""

import inspect
import unittest

import torch
from torch import nn, optim
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from running import package  # noqa: F401
from running.ranks import run_ranks
import shardprop.torch

NAMES = """Adadelta Adagrad Adam AdamW Adamax ASGD Muon NAdam RAdam RMSprop Rprop
    SGD""".split()
# Options that use more operators or states than the default ones.
MORE = {
    "Adam": {"amsgrad": True},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "SGD": {"momentum": 0.9, "nesterov": True},
}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def cases():
    """Yields the name and the options of each optimizer."""
    for name in NAMES:
        if not hasattr(optim, name):  # Muon is not in each release
            continue
        known = inspect.signature(getattr(optim, name)).parameters
        modes = [{"foreach": True}, {"foreach": False}] if "foreach" in known else [{}]
        if "fused" in known:
            modes.append({"fused": True})
        for mode in modes:
            yield name, mode
            if name in MORE:
                yield name, {**mode, **MORE[name]}


def two_steps(mesh, name, options):
    """Returns the number of collectives in the optimizer, and the parameters."""
    torch.manual_seed(0)
    model = Mlp()
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(model, mesh["tp"], plan)
    fully_shard(model, mesh=mesh["dp"])
    taken = [p for p in model.parameters() if name != "Muon" or p.ndim == 2]
    optimizer = getattr(optim, name)(taken, **options)
    x = torch.randn(8, 16)
    collectives = 0
    for _ in range(2):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        with CommDebugMode() as counted:
            optimizer.step()
        collectives += sum(counted.get_comm_counts().values())
    return collectives, [p.full_tensor().detach().clone() for p in model.parameters()]


def with_stock(mesh, name, options):
    """Returns None if stock DTensor refuses the optimizer."""
    try:
        return two_steps(mesh, name, options)
    except (NotImplementedError, RuntimeError) as error:
        if "sharding strategy" in str(error) or "placement" in str(error):
            return None
        raise


def with_ours(mesh, name, options):
    shardprop.torch.install_propagator()
    try:
        return two_steps(mesh, name, options)
    finally:
        shardprop.torch.uninstall_propagator()


def all_steps():
    """Returns name, options, and the results of stock and of ours."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    return [
        (name, options, with_stock(mesh, name, options), with_ours(mesh, name, options))
        for name, options in cases()
    ]


class Optimizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = run_ranks(4, all_steps)[0]

    def test_steps_move_no_more_than_stock(self):
        results = self.results
        self.assertGreaterEqual(len(results), 30)
        self.assertGreater(sum(stock is not None for _, _, stock, _ in results), 20)
        for name, options, stock, ours in results:
            with self.subTest(name=name, options=options):
                if name != "Muon":  # it makes matrices orthogonal
                    self.assertEqual(ours[0], 0)
                if stock is None:
                    continue
                self.assertLessEqual(ours[0], stock[0])
                # Muon computes in bf16.
                near = 2e-2 if name == "Muon" else 1e-6
                for mine, theirs in zip(ours[1], stock[1], strict=True):
                    torch.testing.assert_close(mine, theirs, atol=near, rtol=near)

    def test_fused_steps_equal_plain_ones(self):
        # Stock has no rule for the fused steps of SGD and Adagrad.
        plain = {
            (name, str(options)): ours[1] for name, options, _, ours in self.results
        }
        compared = 0
        for name, options, _, ours in self.results:
            if "fused" not in options:
                continue
            more = {key: value for key, value in options.items() if key != "fused"}
            expected = plain[name, str({"foreach": False, **more})]
            for mine, theirs in zip(ours[1], expected, strict=True):
                torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-5)
            compared += 1
        self.assertGreaterEqual(compared, 6)


if __name__ == "__main__":
    unittest.main()
