"""verify() tells float noise from errors: right programs in short dtypes pass, and wrong
values that are small are found.
"""

import itertools
import os
import sys
import unittest

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from own_code.moves import copy, reduce, shard
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import shardprop as sp

BF16 = torch.bfloat16


def net():
    return nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)
    )


def given():
    torch.manual_seed(1)
    return torch.randn(16, 16), torch.randn(16, 8)


def keep(model, mesh):
    pass


def own(tensor):
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def mean_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def is_parallel():
    return dist.get_world_size() > 1


class Block(nn.Module):
    """A Block is an MLP with tensor parallelism."""

    def __init__(self, width, hidden, dtype):
        super().__init__()
        self.norm = nn.LayerNorm(width, dtype=dtype)
        self.up = nn.Linear(width, hidden, bias=False, dtype=dtype)
        self.down = nn.Linear(hidden, width, bias=False, dtype=dtype)
        self.group, self.reduces = None, True

    def forward(self, x):
        y = self.norm(x)
        y = y if self.group is None else copy(y, self.group)
        y = self.down(F.gelu(self.up(y)))
        return x + (reduce(y, self.group) if self.group and self.reduces else y)


class RightPrograms(unittest.TestCase):
    """Rounding errors of a program's own dtypes are no wrong values."""

    def right(self, build, parallelize, step, batch, mesh):
        report = sp.torch.verify(build, parallelize, step, batch, mesh)
        self.assertTrue(report.ok, f"{report}")
        return report

    def blocks(self, dtype, optimizer, depth=4, reduces=True):
        def build():
            return nn.Sequential(*(Block(64, 256, dtype) for _ in range(depth)))

        def parallelize(model, mesh):
            group = mesh.get_group()
            for block in model:
                block.group, block.reduces = group, reduces
                shard(block.up.weight, 0, group)
                shard(block.down.weight, 1, group)

        def step(model, x):
            made = optimizer(model.parameters())
            loss = model(x).float().square().mean()
            loss.backward()
            made.step()
            return loss

        torch.manual_seed(1)
        batch = torch.randn(32, 64, dtype=dtype)
        return sp.torch.verify(build, parallelize, step, batch, "tp=4")

    def test_tensor_parallel_blocks(self):
        optimizers = [
            lambda parameters: torch.optim.AdamW(parameters, 1e-3),
            lambda parameters: torch.optim.SGD(parameters, 1e-2, momentum=0.9),
        ]
        dtypes = (BF16, torch.float32, torch.float16)
        for dtype, optimizer in itertools.product(dtypes, optimizers):
            report = self.blocks(dtype, optimizer, depth=3)
            self.assertTrue(report.ok, f"{dtype}: {report}")
        report = self.blocks(BF16, optimizers[0], depth=2, reduces=False)
        self.assertEqual((report.first.kind, report.first.name), ("output", "0"))

    def test_autocast(self):
        def step(model, batch):
            x, labels = map(own, batch)
            with torch.autocast("cpu", dtype=BF16):
                loss = (model(x) - labels).square().mean()
            loss.backward()
            mean_gradients(model)
            torch.optim.AdamW(model.parameters(), 1e-3).step()
            return loss

        self.right(net, keep, step, given, "dp=2")

    def test_mixed_precision_of_the_ranks_only(self):
        def build():
            return nn.Sequential(*(
                nn.Sequential(
                    nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 64), nn.LayerNorm(64)
                )
                for _ in range(4)
            ))

        def parallelize(model, mesh):
            policy = MixedPrecisionPolicy(BF16, BF16, torch.float32)
            for layer in [*model, model]:
                fully_shard(layer, mesh=mesh, mp_policy=policy)

        for optimizer in (torch.optim.AdamW, torch.optim.SGD):
            def step(model, x):
                # The gradient of the squares of a layer norm is almost 0.
                loss = model(own(x)).square().mean()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer(model.parameters(), 1e-2).step()
                return loss

            self.right(build, parallelize, step, lambda: torch.randn(32, 64), "dp=2")

    def test_gradients_sent_in_bf16(self):
        def step(model, batch):
            x, labels = map(own, batch)
            (model(x) - labels).square().mean().backward()
            if is_parallel():
                for parameter in model.parameters():
                    sent = (parameter.grad / dist.get_world_size()).to(BF16)
                    dist.all_reduce(sent)
                    parameter.grad.copy_(sent)

        self.right(net, keep, step, given, "dp=4")

    def test_long_sums(self):
        def step(model, x):
            loss = model(own(x)).sum()
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
            return loss

        for dtype in (BF16, torch.float32):
            def batch():
                return (torch.randn(1 << 16, 16) + 0.5).to(dtype)

            self.right(lambda: nn.Linear(16, 1, dtype=dtype), keep, step, batch, "dp=4")

    def test_a_variance_that_cancels(self):
        def step(model, x):
            y = model(own(x)) + 100
            moments = torch.stack([y.mean(0), y.square().mean(0)])
            dist.all_reduce(moments)
            moments = moments / dist.get_world_size()
            return moments[1] - moments[0].square()

        self.right(
            lambda: nn.Linear(8, 8), keep, step, lambda: torch.randn(4096, 8), "dp=4"
        )


class SmallValues(unittest.TestCase):
    """Wrong values are found however small they are."""

    def first(self, step, mesh, build=net, batch=given, parallelize=keep):
        right = sp.torch.verify(
            build, parallelize, lambda m, b: step(m, b, False), batch, mesh
        )
        self.assertTrue(right.ok, f"{right}")
        wrong = sp.torch.verify(
            build, parallelize, lambda m, b: step(m, b, is_parallel()), batch, mesh
        )
        self.assertFalse(wrong.ok, "the mistake is not found")
        return wrong.first

    def test_gradients_of_a_scaled_loss(self):
        def step(model, batch, mistake):
            x, labels = map(own, batch)
            ((model(x) - labels).square().mean() * 1e-7).backward()
            for name, parameter in model.named_parameters():
                dist.all_reduce(parameter.grad)
                if not (mistake and name == "0.bias"):
                    parameter.grad /= dist.get_world_size()

        first = self.first(step, "dp=4")
        self.assertEqual((first.kind, first.name), ("gradient", "0.bias"))
        self.assertAlmostEqual(first.factor, 4, 5)

    def optimizer(self, mistake_of):
        def step(model, batch, mistake):
            x, labels = map(own, batch)
            (model(x) - labels).square().mean().backward()
            mean_gradients(model)
            options = {"lr": 1e-4, "weight_decay": 0.1}
            if mistake:
                options.update(mistake_of)
            torch.optim.AdamW(model.parameters(), **options).step()

        first = self.first(step, "dp=2")
        self.assertEqual((first.kind, first.name), ("updated parameter", "0.weight"))

    def test_updates(self):
        self.optimizer({"lr": 1.2e-4})
        self.optimizer({"weight_decay": 0})
        self.optimizer({"lr": 1e-6})

    def test_factors_in_bf16(self):
        """One element may be wrong by 10 % there, but not all of them by 5 %."""
        def build():
            blocks = (Block(64, 256, BF16) for _ in range(2))
            return nn.Sequential(*blocks, nn.Linear(64, 16, dtype=BF16))

        def step(model, x, mistake):
            loss = model(own(x)).float().square().mean()
            (loss * (1.05 if mistake else 1)).backward()
            mean_gradients(model)

        first = self.first(
            step, "dp=2", build, lambda: torch.randn(32, 64, dtype=BF16)
        )
        self.assertEqual((first.kind, first.name), ("gradient", "2.weight"))
        self.assertAlmostEqual(first.factor, 1.05, 2)

    def test_f16_updates(self):
        """The squares of small gradients underflow, so that AdamW divides by 0."""
        def step(model, x, mistake):
            (64 * model(own(x)).square().mean()).backward()
            mean_gradients(model)
            learning_rate = 2e-3 if mistake else 1e-3
            torch.optim.AdamW(model.parameters(), learning_rate).step()

        first = self.first(
            step, "dp=2", lambda: nn.Linear(64, 64, dtype=torch.float16),
            lambda: 4 * torch.randn(64, 64).half(),
        )
        self.assertEqual((first.kind, first.name), ("updated parameter", "weight"))

    def test_states_of_an_optimizer(self):
        def step(model, batch, mistake):
            x, labels = map(own, batch)
            ((model(x) - labels).square().mean() * 1e-4).backward()
            local = [parameter.grad.clone() for parameter in model.parameters()]
            mean_gradients(model)
            optimizer = torch.optim.AdamW(model.parameters(), 1e-4, eps=1.0)
            optimizer.step()
            for parameter, gradient in zip(model.parameters(), local):
                if mistake:
                    state = optimizer.state[parameter]["exp_avg_sq"]
                    state.copy_(gradient.square() * 1e-3)

        first = self.first(step, "dp=2")
        self.assertEqual((first.kind, first.name), ("optimizer state", "0.weight"))

    def test_values_next_to_large_ones(self):
        class Masked(nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                y[:, -1] = -1e9
                return y

        def step(model, x, mistake):
            return model(own(x) * (1.001 if mistake else 1))

        first = self.first(
            step, "dp=2", lambda: Masked(8, 8), lambda: torch.randn(16, 8)
        )
        self.assertEqual(first.kind, "input")

        def scaled(model, x, mistake):
            with torch.no_grad():
                y = model(own(x))
                return y * (1.01 if mistake else 1)

        first = self.first(
            scaled, "dp=2", lambda: Masked(8, 8), lambda: torch.randn(16, 8)
        )
        self.assertEqual(first.kind, "result")


if __name__ == "__main__":
    unittest.main()
