"""Each simulated rank has its own Python variables, as a process has."""

import os
import random
import sys
import unittest

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))

import numpy as np
import torch
import torch.distributed as dist
from own_code import moves
from torch import nn

import shardprop as sp

GROUP = None
GENERATOR = torch.Generator()


class Mlp(nn.Module):
    """Its layers find the group as `group()` says."""

    def __init__(self, group, reduces=True):
        super().__init__()
        self.up = nn.Linear(8, 8)
        self.down = nn.Linear(8, 8, bias=False)
        self.group, self.reduces = group, reduces

    def forward(self, x):
        group = self.group()
        if group is None:
            return self.down(self.up(x).relu())
        y = self.down(self.up(moves.copy(x, group)).relu())
        return moves.reduce(y, group) if self.reduces else y


def shard(model, group):
    moves.shard(model.up.weight, 0, group)
    moves.shard(model.up.bias, 0, group)
    moves.shard(model.down.weight, 1, group)


def step(model, x):
    loss = (model(x) - 1).square().mean()
    loss.backward()
    return loss


def tokens():
    torch.manual_seed(1)
    return torch.randn(6, 8)


def parallelize_by_global(model, mesh):
    """Megatron-LM creates all groups on each rank, and keeps its own one."""
    global GROUP
    for ranks in ([0, 1], [2, 3]):
        made = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            GROUP = made
    shard(model, GROUP)


MANY = [[[object()] for _ in range(100)] for _ in range(100)]


def step_of_many(model, x):
    assert len(MANY) == 100
    return step(model, x)


class Groups:
    tp = None


class Trainer:
    """A Trainer is an object whose methods are the user's code."""

    def __init__(self):
        self.group, self.steps = None, 0

    def build(self):
        return Mlp(lambda: self.group)

    def parallelize(self, model, mesh):
        self.group = mesh.get_group()
        shard(model, self.group)

    def step(self, model, x):
        self.steps += 1
        assert self.steps == 1
        return step(model, x)


class Variables(unittest.TestCase):
    def check(self, build, parallelize, step=step, mesh="tp=2"):
        report = sp.torch.verify(build, parallelize, step, tokens, mesh)
        self.assertTrue(report.ok, f"{report}")
        self.assertEqual(report.notes, [])

    def test_global(self):
        self.check(lambda: Mlp(lambda: GROUP), parallelize_by_global, mesh="dp=2,tp=2")
        self.assertIsNone(GROUP)
        report = sp.torch.verify(
            lambda: Mlp(lambda: GROUP, False), parallelize_by_global, step, tokens,
            "dp=2,tp=2",
        )
        self.assertIn("a sum over tp is missing", " ".join(report.first.notes))

    def test_enclosing_function(self):
        held, group = {}, None

        def by_entry(model, mesh):
            held["group"] = mesh.get_group()
            shard(model, held["group"])

        def by_name(model, mesh):
            nonlocal group
            group = mesh.get_group()
            shard(model, group)

        self.check(lambda: Mlp(lambda: held.get("group")), by_entry)
        self.check(lambda: Mlp(lambda: group), by_name)
        self.assertEqual((held, group), ({}, None))

    def test_class(self):
        def parallelize(model, mesh):
            Groups.tp = mesh.get_group()
            shard(model, Groups.tp)

        self.check(lambda: Mlp(lambda: Groups.tp), parallelize)
        self.assertIsNone(Groups.tp)

    def test_object(self):
        trainer = Trainer()
        self.check(trainer.build, trainer.parallelize, trainer.step)
        self.assertEqual((trainer.group, trainer.steps), (None, 0))

    def test_cache(self):
        """A cache of gathered weights, in the variables of a function."""
        cache = {}

        def gathered(weight):
            if "weight" not in cache:
                cache["weight"] = moves.gather(weight, 0, dist.group.WORLD)
            return cache["weight"]

        class Gathering(nn.Linear):
            def forward(self, x):
                return nn.functional.linear(x, gathered(self.weight), self.bias)

        self.check(
            lambda: Gathering(8, 8),
            lambda model, mesh: moves.shard(model.weight, 0, mesh.get_group()),
        )

    def test_tensor(self):
        total = torch.zeros(8)

        def counting(model, x):
            if dist.get_world_size() > 1:
                dist.barrier()
            total.add_(x.sum(0))
            return model(x + total)

        self.check(lambda: nn.Linear(8, 8), lambda model, mesh: None, counting)
        self.assertTrue(torch.equal(total, torch.zeros(8)))

    def test_variables_of_modules(self):
        """Variables of modules and of executed code stay in place."""
        executed = {}
        exec("seen = []\ndef parallelize(model, mesh): seen.append(1)", executed)
        modules, own = sys.modules, globals()

        def step(model, x):
            assert modules is sys.modules and own["GROUP"] is None
            return model(x)

        self.check(lambda: nn.Linear(8, 8), executed["parallelize"], step)
        self.assertIn("seen", executed)
        self.assertIn("len", executed["__builtins__"])

    def test_large_object(self):
        """Objects within a large list are searched after the near variables."""
        report = sp.torch.verify(
            lambda: Mlp(lambda: GROUP), parallelize_by_global, step_of_many, tokens,
            "dp=2,tp=2",
        )
        self.assertTrue(report.ok, f"{report}")
        self.assertIsNone(GROUP)
        self.assertEqual(
            report.notes,
            [
                "The variables of build, parallelize and step reach more than 5000 "
                "objects; the ranks share the farthest ones."
            ],
        )

    def test_object_with_slots(self):
        class State:
            __slots__ = ("group", "steps", "unused")

            def __init__(self):
                self.group, self.steps = None, 0

        state = State()

        def parallelize(model, mesh):
            state.group = mesh.get_group()
            state.unused = dist.get_rank()
            shard(model, state.group)

        def counting(model, x):
            state.steps += 1
            assert state.steps == 1
            assert getattr(state, "unused", 0) == dist.get_rank()
            return step(model, x)

        self.check(lambda: Mlp(lambda: state.group), parallelize, counting)
        self.assertEqual((state.group, state.steps), (None, 0))
        self.assertFalse(hasattr(state, "unused"))

    def test_large_container(self):
        """The ranks share a large container. A note says so if it was changed."""
        words, seen = list(range(2000)), list(range(1200))

        def reading(model, x):
            assert words[3] == 3
            return step(model, x)

        def writing(model, x):
            seen.append(words[3])
            return step(model, x)

        self.check(lambda: nn.Linear(8, 8), lambda model, mesh: None, reading)
        report = sp.torch.verify(
            lambda: nn.Linear(8, 8), lambda model, mesh: None, writing, tokens, "tp=2"
        )
        self.assertTrue(report.ok, f"{report}")
        self.assertEqual(
            report.notes,
            [
                "A list that starts with [0, 1, 2, 3, 4, 5, ...] has more than 1000 "
                "entries and was changed; the ranks share it."
            ],
        )

    def test_random_numbers(self):
        own = random.Random(1)
        numbers = np.random.default_rng(2)

        def noisy(model, x):
            np.random.seed(3)
            for _ in range(2):
                x = x + torch.rand(x.shape, generator=GENERATOR)
                x = x + own.random() + random.random() + numbers.random()
                x = x + torch.from_numpy(np.random.rand(*x.shape)).float()
                if dist.get_world_size() > 1:
                    dist.barrier()
            return model(x)

        before = np.random.get_state()[1].copy()
        self.check(lambda: nn.Linear(8, 8), lambda model, mesh: None, noisy)
        self.assertTrue((before == np.random.get_state()[1]).all())


class Integers(unittest.TestCase):
    """Integers are compared in results, and in buffers that change."""

    def report(self, build, step, batch=tokens):
        return sp.torch.verify(build, lambda model, mesh: None, step, batch, "dp=2")

    def test_results(self):
        """The words that a model with sharded words chooses."""

        def step_of(offset):
            def step(model, x):
                size, rank = dist.get_world_size(), dist.get_rank()
                own = model(x).chunk(size, -1)[rank]
                best, word = own.max(-1)
                if offset:
                    word = word + rank * own.shape[-1]
                all_best = [torch.empty_like(best) for _ in range(size)]
                all_words = [torch.empty_like(word) for _ in range(size)]
                dist.all_gather(all_best, best)
                dist.all_gather(all_words, word)
                chosen = torch.stack(all_best).argmax(0, keepdim=True)
                return torch.stack(all_words).gather(0, chosen)[0]

            return torch.no_grad()(step)

        def build():
            return nn.Linear(8, 16)

        self.assertTrue(self.report(build, step_of(True)).ok)
        report = self.report(build, step_of(False))
        self.assertEqual((report.first.kind, report.first.name), ("result", ""))

    def test_buffers(self):
        class Counting(nn.Linear):
            def __init__(self, reduces):
                super().__init__(8, 8)
                self.register_buffer("positive", torch.zeros(8, dtype=torch.long))
                # A constant of the rank is right.
                self.register_buffer("first", torch.tensor([dist.get_rank() * 4]))
                self.reduces = reduces

            def forward(self, x):
                count = (x > 0).sum(0)
                if self.reduces:
                    dist.all_reduce(count)
                self.positive += count
                return super().forward(x)

        def step(model, x):
            model(x.chunk(dist.get_world_size())[dist.get_rank()])

        self.assertTrue(self.report(lambda: Counting(True), step).ok)
        report = self.report(lambda: Counting(False), step)
        self.assertEqual(
            (report.first.kind, report.first.name), ("updated buffer", "positive")
        )
        self.assertEqual(report.first.layout, ("P(sum)",))

    def test_noise(self):
        """Rounding decides on these integers, so they are not compared."""

        def step(model, x):
            size, rank = dist.get_world_size(), dist.get_rank()
            total = (model(x) / 3).chunk(size)[rank].sum(0)
            dist.all_reduce(total)
            return (total * 1e9).round().long()

        report = self.report(lambda: nn.Linear(8, 8), step)
        self.assertEqual(report.wrong, [])
        status = [v.status for v in report.values if v.kind == "result"]
        self.assertEqual(status, ["not compared"])

    def test_python(self):
        def step_of(mistake):
            def step(model, x):
                model(x)
                return {"tokens": x.shape[0] + mistake * dist.get_rank(), "flag": True}

            return step

        self.assertTrue(self.report(lambda: nn.Linear(8, 8), step_of(False)).ok)
        self.assertFalse(self.report(lambda: nn.Linear(8, 8), step_of(True)).ok)


if __name__ == "__main__":
    unittest.main()
