"""verify() compares a user's parallel program with the model on one device.

Each program of own_code is right, and has one planted mistake: the right one passes,
and the report of the mistake names the value at which it begins.

`--only NAME` runs one program and prints its reports.
"""

import importlib
import os
import sys
import unittest

sys.path.insert(0, os.environ.get("SHARDPROP_PACKAGE", ""))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from own_code import CASES
from torch import nn

import shardprop as sp


def reports(case):
    return [
        sp.torch.verify(code.build, code.parallelize, code.step, code.batch, case.mesh)
        for code in (case.code(False), case.code(True))
    ]


class Programs(unittest.TestCase):
    """Right programs pass, mistakes are named at the right value."""


def _add(case):
    def test(self):
        if case.needs:
            try:
                importlib.import_module(case.needs)
            except Exception as missing:
                self.skipTest(f"SKIPPED: {case.needs} cannot be imported: {missing}")
        right, wrong = reports(case)
        self.assertTrue(right.ok, f"{right}")
        self.assertIsNotNone(wrong.first, "the mistake is not found")
        found = (wrong.first.kind, wrong.first.name)
        self.assertEqual(found, case.wrong, f"{wrong}")
        self.assertIn(case.says, " ".join(wrong.first.notes))
        if wrong.first.kind not in ("updated parameter", "result"):
            self.assertRegex(wrong.first.place, "own_code|modeling_", f"{wrong}")

    setattr(Programs, f"test_{case.name}", test)


for each in CASES:
    _add(each)


def _net():
    return nn.Linear(4, 4)


def _nothing(model, mesh):
    pass


class Failures(unittest.TestCase):
    """A program that cannot run is one clear error."""

    def error(self, step, mesh="dp=2", parallelize=_nothing):
        with self.assertRaises(sp.Error) as raised:
            sp.torch.verify(_net, parallelize, step, torch.ones(2, 4), mesh)
        return raised.exception

    def test_a_rank_raises(self):
        def parallelize(model, mesh):
            if mesh.get_rank() == 1:
                raise ValueError("no such layer")

        error = self.error(lambda model, x: model(x), parallelize=parallelize)
        self.assertEqual(error.code, "SP0912")
        self.assertEqual(error.place, "rank 1")
        self.assertIn("no such layer", error.message)

    def test_the_model_raises(self):
        def step(model, x):
            raise ValueError("no such input")

        error = self.error(step)
        self.assertEqual((error.code, error.place), ("SP0912", "the model on one device"))

    def test_a_hang(self):
        def step(model, x):
            if dist.get_world_size() == 1 or dist.get_rank() == 0:
                dist.all_reduce(x)
            return model(x)

        error = self.error(step)
        self.assertEqual(error.code, "SP0911")
        self.assertIn("rank 0 waits for", str(error))
        self.assertIn("all_reduce(sum) of 2x4", str(error))
        self.assertIn("rank 1 has ended", str(error))

    def test_different_collectives(self):
        def step(model, x):
            if dist.get_rank() == 0:
                dist.all_reduce(x)
            else:
                dist.broadcast(x, 0)
            return model(x)

        error = self.error(step)
        self.assertEqual(error.code, "SP0913")
        self.assertIn("rank 0: all_reduce(sum)", str(error))
        self.assertIn("rank 1: broadcast", str(error))

    def test_different_sizes(self):
        def step(model, x):
            dist.all_reduce(x[:1 + dist.get_rank()].clone())
            return model(x)

        self.assertEqual(self.error(step).code, "SP0913")

    def test_a_missing_send(self):
        def step(model, x):
            if dist.get_world_size() == 2 and dist.get_rank() == 1:
                dist.recv(x, 0)
            return model(x)

        error = self.error(step)
        self.assertEqual(error.code, "SP0911")
        self.assertIn("a send of rank 0", str(error))

    def test_receive_from_any(self):
        def step(model, x):
            if dist.get_world_size() == 2 and dist.get_rank() == 1:
                dist.recv(x)
            return model(x)

        self.assertEqual(self.error(step).code, "SP0903")

    def test_verify_within_verify(self):
        def step(model, x):
            sp.torch.verify(_net, _nothing, lambda m, b: m(b), torch.ones(2, 4), 2)

        self.assertEqual(self.error(step).code, "SP0903")

    def test_one_model_for_all_ranks(self):
        model = _net()
        with self.assertRaises(sp.Error) as raised:
            sp.torch.verify(
                lambda: model, _nothing, lambda m, x: m(x), torch.ones(2, 4), "dp=2"
            )
        self.assertEqual(raised.exception.code, "SP0903")
        self.assertIn("same model again", raised.exception.message)

    def test_mesh(self):
        for mesh in ("dp=0", "dp=two", ""):
            with self.assertRaises(sp.Error, msg=mesh):
                sp.torch.verify(_net, _nothing, lambda m, b: m(b), torch.ones(2), mesh)


class Waits(unittest.TestCase):
    """A rank has the result of a collective when it waits for it."""

    def report(self, step):
        return sp.torch.verify(_net, _nothing, step, torch.ones(2, 4), "dp=2")

    def test_a_missing_wait_is_named(self):
        def step(model, x):
            y = model(x)
            dist.all_reduce(torch.ones(3), async_op=True)
            return y

        report = self.report(step)
        self.assertTrue(report.ok, f"{report}")
        self.assertEqual(len(report.notes), 1)
        self.assertIn("never waits for all_reduce(sum) of 3 at", report.notes[0])
        self.assertIn("on rank 0, 1.", report.notes[0])

    def test_a_receive(self):
        def step(model, x):
            if dist.get_world_size() == 1:
                return model(x)
            other = 1 - dist.get_rank()
            received = torch.empty_like(x)
            sent, work = dist.isend(x, other), dist.irecv(received, other)
            before = bool(received.isnan().all())
            work.wait()
            sent.wait()
            assert before and torch.equal(x, received)
            return model(received)

        report = self.report(step)
        self.assertTrue(report.ok, f"{report}")
        self.assertEqual(report.notes, [])

    def test_a_wait_ends_earlier_collectives(self):
        def step(model, x):
            size, values = dist.get_world_size(), [x.clone() for _ in range(3)]
            works = [dist.all_reduce(value, async_op=True) for value in values]
            works[1].wait()
            assert torch.equal(values[0], size * x)
            assert size == 1 or bool(values[2].isnan().all())
            works[2].wait()
            return model(values[2] / size)

        report = self.report(step)
        self.assertTrue(report.ok, f"{report}")
        self.assertEqual(report.notes, [])

    def test_functional_collectives(self):
        def step(model, x):
            from torch.distributed import _functional_collectives as collectives

            y = collectives.all_reduce(x, "sum", dist.group.WORLD)
            return model(y / dist.get_world_size())

        report = self.report(step)
        self.assertTrue(report.ok, f"{report}")
        self.assertEqual(report.notes, [])


class Accumulation(unittest.TestCase):
    """Each rank and the reference have as many micro-batches."""

    def test_values_are_compared(self):
        def step(model, x):
            size, rank = dist.get_world_size(), dist.get_rank()
            own = x.chunk(size)[rank]
            for part in own.chunk(2):
                (model(part).square().sum() / x.shape[0]).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)

        def build():
            return nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        torch.manual_seed(1)
        report = sp.torch.verify(build, _nothing, step, torch.randn(8, 4), "dp=2")
        self.assertTrue(report.ok, f"{report}")
        left = [v.title for v in report.values if v.status == "not compared"]
        self.assertEqual(left, [])
        self.assertEqual(report.layout("0", "output"), ("S(0)",))


class Numbers(unittest.TestCase):
    """Random numbers do not depend on the layout."""

    def report(self, draw, shard, seed=0):
        class Noisy(nn.Linear):
            def forward(self, x):
                return super().forward(draw(x))

        def parallelize(model, mesh):
            torch.manual_seed(3 + seed * mesh.get_rank())

        def step(model, x):
            if shard:
                x = x.chunk(dist.get_world_size())[dist.get_rank()]
            return model(x)

        torch.manual_seed(2)
        return sp.torch.verify(
            lambda: Noisy(6, 6), parallelize, step, torch.rand(8, 6), "dp=2"
        )

    DRAWS = (
        lambda x: x + torch.rand_like(x),
        lambda x: torch.bernoulli(x),
        lambda x: x * torch.empty(len(x), 1).normal_(),
        lambda x: x + torch.poisson(x),
        lambda x: F.alpha_dropout(x, 0.3, True),
        lambda x: F.gumbel_softmax(x),
        lambda x: F.rrelu(x - 0.5, training=True),
        lambda x: x + torch.nn.init.trunc_normal_(torch.empty(len(x), 6)),
    )

    def test_parts(self):
        for index, draw in enumerate(self.DRAWS):
            for seed in (0, 1):
                with self.subTest(index=index, seed=seed):
                    report = self.report(draw, True, seed)
                    self.assertTrue(report.ok, f"{report}")
                    self.assertEqual(report.notes, [])

    def test_replicas(self):
        for index, draw in enumerate(self.DRAWS):
            with self.subTest(index=index):
                self.assertTrue(self.report(draw, False).ok)
                report = self.report(draw, False, seed=1)
                self.assertFalse(report.ok, "replicas draw different numbers")
                self.assertIn("have different states", " ".join(report.notes))

    def test_unknown_part(self):
        report = self.report(lambda x: torch.rand(len(x) + 1, 6)[:-1], True)
        self.assertFalse(report.ok)
        self.assertIn("numbers is not known", " ".join(report.notes))

    def test_attention_of_pytorch(self):
        class Attention(nn.Module):
            def __init__(self, needs_weights):
                super().__init__()
                self.inner = nn.MultiheadAttention(8, 2, 0.3, batch_first=True)
                self.needs_weights = needs_weights

            def forward(self, x):
                return self.inner(x, x, x, need_weights=self.needs_weights)[0]

        def step(model, x):
            x = x.chunk(dist.get_world_size())[dist.get_rank()]
            return model(x)

        torch.manual_seed(4)
        for needs_weights in (True, False):
            report = sp.torch.verify(
                lambda: Attention(needs_weights), _nothing, step,
                torch.randn(4, 5, 8), "dp=2",
            )
            self.assertTrue(report.ok, f"{report}")


class Scaled(torch.optim.SGD):
    """The argument after the closure scales the learning rate."""

    def step(self, closure=None, scale=None):
        loss = closure() if closure is not None else None
        assert scale == 3.0
        for group in self.param_groups:
            group["lr"] = 0.1 * scale
        super().step()
        return loss


class Closures(unittest.TestCase):
    """optimizer.step(closure) computes the gradients itself."""

    def report(self, update):
        def step(model, x):
            size, rank = dist.get_world_size(), dist.get_rank()
            own = x.chunk(size)[rank]
            optimizer = Scaled(model.parameters(), 0.1)
            # The closure replaces these gradients, which differ between the ranks.
            model(own).square().mean().backward()

            def closure():
                optimizer.zero_grad()
                loss = model(own).square().mean()
                loss.backward()
                if size > 1:
                    for parameter in model.parameters():
                        dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
                return loss

            update(optimizer, closure)

        torch.manual_seed(2)
        return sp.torch.verify(_net, _nothing, step, torch.randn(6, 4), "dp=2")

    def test_arguments_after_the_closure(self):
        for update in (
            lambda optimizer, closure: optimizer.step(closure, 3.0),
            lambda optimizer, closure: optimizer.step(closure, scale=3.0),
            lambda optimizer, closure: optimizer.step(scale=3.0, closure=closure),
        ):
            report = self.report(update)
            self.assertTrue(report.ok, f"{report}")
            names = {v.name for v in report.values if v.kind == "gradient"}
            self.assertEqual(names, {"weight", "bias"})


class Afterwards(unittest.TestCase):
    """The process is as before."""

    def test_state_is_restored(self):
        torch.manual_seed(3)
        before = torch.get_rng_state()
        environment = dict(os.environ)
        call = nn.Module.__call__
        sp.torch.verify(
            _net, _nothing, lambda model, x: model(x), torch.ones(2, 4), "dp=2"
        )
        self.assertTrue(torch.equal(before, torch.get_rng_state()))
        self.assertEqual(environment, dict(os.environ))
        self.assertIs(call, nn.Module.__call__)
        self.assertFalse(dist.is_initialized())

    def test_helper(self):
        case = next(case for case in CASES if case.name == "bias_times_degree")
        code = case.code(True)
        arguments = (code.build, code.parallelize, code.step, code.batch, case.mesh)
        with self.assertRaisesRegex(AssertionError, "first wrong value"):
            sp.torch.assert_sharded_equals(*arguments)
        code = case.code(False)
        arguments = (code.build, code.parallelize, code.step, code.batch, case.mesh)
        self.assertTrue(sp.torch.assert_sharded_equals(*arguments).ok)

    def test_layouts_and_collectives(self):
        case = next(case for case in CASES if case.name == "missing_reduction")
        right, _ = reports(case)
        self.assertEqual(right.layout("layers.0.mlp.up"), ("S(2)",))
        self.assertEqual(right.layout("layers.0.mlp.up.weight", "parameter"), ("S(0)",))
        ran = right.collectives[0][0]
        self.assertEqual((ran.kind, ran.reduce_op, ran.ranks), ("all_reduce", "sum", (0, 1)))
        self.assertEqual(ran.module, "layers.0.mlp")
        self.assertEqual(ran.bytes, 4 * 6 * 8 * 4)
        self.assertIn("moves.py", ran.place)


if __name__ == "__main__":
    if "--only" in sys.argv:
        name = sys.argv[sys.argv.index("--only") + 1]
        for report in reports(next(case for case in CASES if case.name == name)):
            print(report, end="\n\n")
        sys.exit()
    unittest.main()
