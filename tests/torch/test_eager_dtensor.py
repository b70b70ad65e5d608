#!/usr/bin/env python3
"""Eager DTensor with our propagator: equal to the unsharded operators.

One process plays four ranks (LocalTensorMode on the fake backend). Needs the
Python package of a build, named by $SHARDPROP_PACKAGE.
"""

import argparse
import itertools
import math
import random
import unittest

import torch
import torch.nn.functional as F
from torch.distributed._local_tensor import LocalTensor
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

from running import package  # noqa: F401
from running.ranks import run_ranks
from running.simulated import WORLD, SimulatedWithPropagator, full_value
import shardprop.torch

import dtensor_ops

# Of PyTorch's suite: what stock fails and we pass, and some that both pass.
SUITE = """addbmm cdist complex isin masked_scatter as_strided unsafe_split polar
    nn.functional.conv_transpose1d nn.functional.conv1d nn.functional.pad.reflect
    nn.functional.unfold unflatten put take scatter searchsorted unbind renorm
    logsumexp nn.functional.embedding nn.functional.embedding_bag
    nn.functional.cosine_embedding_loss scatter_reduce.sum scatter_reduce.amax
    masked.logsumexp add amax cumsum flip gather index_add kthvalue matmul
    nn.functional.group_norm nn.functional.nll_loss roll sort std tril
    where""".split()
R = Replicate()


def locals_of(d):
    local = d.to_local()
    return local._local_tensors if isinstance(local, LocalTensor) else {0: local}


def check_redistributions(mesh):
    """From all placements to all without terms, of even and uneven sizes."""
    pairs = list(itertools.product([R, Shard(0), Shard(1), Partial()], repeat=2))
    for shape in ((8, 4), (4, 8, 3), (7, 6), (1, 8)):
        x = torch.arange(float(math.prod(shape))).reshape(shape)
        for given, wanted in itertools.product(pairs, repeat=2):
            if any(p.is_partial() for p in wanted):
                continue
            cut = [R if p.is_partial() else p for p in given]
            local = distribute_tensor(x, mesh, cut).to_local()
            d = DTensor.from_local(
                local, mesh, given, run_check=False, shape=x.shape, stride=x.stride()
            ).redistribute(placements=wanted)
            right = x * 2 ** sum(p.is_partial() for p in given)
            said = f"{shape} {given} -> {wanted}"
            expected = locals_of(distribute_tensor(right, mesh, wanted))
            for rank, part in locals_of(d).items():
                torch.testing.assert_close(part, expected[rank], msg=said)


def redistribute_on_gloo():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    shardprop.torch.install_propagator()
    check_redistributions(mesh)
    shardprop.torch.uninstall_propagator()


def check_diagonals(mesh):
    """Of matrices cut in the dim that the diagonal crosses: nothing moves."""
    for shape, offset, cut in (((8, 8), 0, 0), ((7, 11), 3, 0), ((11, 6), -2, 1)):
        x = torch.arange(float(math.prod(shape))).reshape(shape)
        d = distribute_tensor(x, mesh, [Shard(cut)])
        made = torch.diagonal(d, offset)
        assert made.placements == (Shard(0),), (shape, made.placements)
        torch.testing.assert_close(full_value(made), torch.diagonal(x, offset))
        made = torch.trace(d)
        assert made.placements[0].is_partial(), (shape, made.placements)
        torch.testing.assert_close(full_value(made), torch.trace(x))


def diagonals_on_gloo():
    mesh = init_device_mesh("cpu", (WORLD,))
    shardprop.torch.install_propagator()
    check_diagonals(mesh)
    shardprop.torch.uninstall_propagator()


class OnGloo(unittest.TestCase):
    def test_redistributions_between_processes(self):
        run_ranks(WORLD, redistribute_on_gloo)

    def test_diagonals_between_processes(self):
        run_ranks(WORLD, diagonals_on_gloo)


class EagerDTensor(SimulatedWithPropagator):
    def setUp(self):
        torch.manual_seed(7)
        super().setUp()

    def check(self, run, tensors, mesh=None, placements=None):
        """run(*tensors) is the same on DTensors in all placements of a line."""
        mesh = mesh or self.line
        expected = run(*(full_value(t) for t in tensors))
        cuts = [[R, *(Shard(d) for d in range(t.ndim))] for t in tensors]
        for placed in placements or itertools.product(*cuts):
            with self.subTest(placed=str(placed)):
                given = [
                    distribute_tensor(t, mesh, p if isinstance(p, tuple) else [p])
                    for t, p in zip(tensors, placed)
                ]
                torch.testing.assert_close(full_value(run(*given)), expected)

    def test_products_and_linear(self):
        self.check(torch.mm, [torch.randn(7, 6), torch.randn(6, 5)])
        self.check(F.linear, [torch.randn(8, 6), torch.randn(5, 6), torch.randn(5)])

    def test_views_of_uneven_sizes(self):
        self.check(lambda x: x.view(10, 6), [torch.randn(5, 2, 6)])
        self.check(lambda x: x.view(-1), [torch.randn(8, 3)])
        self.check(lambda x: x.view(8, 2, 3), [torch.randn(8, 6)])

    def test_softmax_and_norms_stay_cut(self):
        x = torch.randn(6, 9)
        self.check(lambda x: torch.softmax(x, -1), [x])
        self.check(lambda x: F.layer_norm(x, (9,)), [x])
        self.check(lambda x: torch.logsumexp(x, 1), [x])
        d = distribute_tensor(x, self.line, [Shard(1)])
        self.assertTrue(torch.softmax(d, -1).placements[0].is_shard())

    def test_arguments_that_are_no_tensors_are_part_of_the_key(self):
        x = torch.randn(8, 6)
        d = distribute_tensor(x, self.line, [Shard(0)])
        for dim in (0, 1, -1):
            torch.testing.assert_close(full_value(d.cumsum(dim)), x.cumsum(dim))
            torch.testing.assert_close(full_value(d.roll(2, dim)), x.roll(2, dim))

    def test_a_flattened_mesh_gathers_right(self):
        x = torch.randn(5, 3)
        self.grid._flatten()
        d = distribute_tensor(x, self.grid, [Shard(0), Shard(0)])
        torch.testing.assert_close(full_value(d), x)
        torch.testing.assert_close(full_value(d.redistribute(placements=[R, R])), x)

    def test_redistributions_between_all_placements(self):
        check_redistributions(self.grid)

    def test_cosine_embedding_loss(self):
        a, b = torch.randn(8, 6), torch.randn(8, 6)
        y = torch.randint(0, 2, (8,)).float() * 2 - 1
        self.check(F.cosine_embedding_loss, [a, b, y])

    def test_nll_loss(self):
        scores = torch.randn(8, 6).log_softmax(1)
        target, weight = torch.randint(0, 6, (8,)), torch.rand(6)
        self.check(F.nll_loss, [scores, target])
        self.check(
            lambda s, t, w: F.nll_loss(s, t, w, ignore_index=2),
            [scores, target, weight],
        )

    @unittest.skipUnless(
        hasattr(F, "linear_cross_entropy"),
        "SKIPPED: this torch has no linear_cross_entropy",
    )
    def test_linear_cross_entropy(self):
        x, w, target = torch.randn(8, 6), torch.randn(5, 6), torch.randint(0, 5, (8,))
        loss = F.linear_cross_entropy
        placed = list(itertools.product([R, Shard(0)], repeat=3))
        for options in ({}, {"ignore_index": 2}):
            self.check(
                lambda *t, o=options: loss(*t, **o), [x, w, target], placements=placed
            )
        self.check(
            lambda x, w, t, by: loss(x, w, t, weight=by),
            [x, w, target, torch.rand(5)],
            placements=[(*p, R) for p in placed],
        )

    def test_convolutions(self):
        self.check(
            lambda x, w, b: F.conv1d(x, w, b, padding=1),
            [torch.randn(4, 3, 9), torch.randn(6, 3, 3), torch.randn(6)],
        )
        self.check(
            lambda x, w: F.conv2d(x, w, stride=2),
            [torch.randn(4, 4, 8, 8), torch.randn(6, 4, 3, 3)],
        )
        self.check(F.conv3d, [torch.randn(2, 2, 5, 6, 7), torch.randn(3, 2, 2, 3, 2)])

    def test_backward(self):
        x, w = torch.randn(8, 6), torch.randn(5, 6)

        def gradients(x, w):
            x, w = x.requires_grad_(), w.requires_grad_()
            loss = F.layer_norm(F.gelu(F.linear(x, w)), (5,)).square().sum()
            return torch.autograd.grad(loss, (x, w))

        expected = gradients(x.clone(), w.clone())
        for placed in itertools.product([R, Shard(0), Shard(1)], repeat=2):
            given = [distribute_tensor(t, self.line, [p]) for t, p in zip((x, w), placed)]
            for mine, right in zip(gradients(*given), expected):
                torch.testing.assert_close(full_value(mine), right)

    def test_layer_norm_backward_stays_cut(self):
        x = distribute_tensor(torch.randn(8, 6, 4), self.grid, [Shard(0), Shard(1)])
        w = distribute_tensor(torch.randn(4), self.grid, [R, R])
        y, mean, rstd = torch.native_layer_norm(x, (4,), w, w, 1e-5)
        made = torch.ops.aten.native_layer_norm_backward(
            x, x, [4], mean, rstd, w, w, [True, True, True]
        )
        self.assertEqual(made[0].placements, x.placements)
        self.assertTrue(all(p.is_partial() for p in made[1].placements))
        expected = torch.ops.aten.native_layer_norm_backward(
            *full_value((x, x)), [4], *full_value((mean, rstd, w, w)), [True] * 3
        )
        torch.testing.assert_close([full_value(t) for t in made], list(expected))

    def test_diagonals_stay_cut(self):
        check_diagonals(self.line)

    def test_norm_of_gradients(self):
        """As clip_grad_norm_ takes it: a list of cut, uneven and whole tensors."""
        shapes = (((2048, 512), Shard(0)), ((7, 130), Shard(1)), ((9,), R), ((), R))
        gradients = [
            distribute_tensor(torch.randn(shape).double(), self.line, [placement])
            for shape, placement in shapes
        ]
        wanted = [full_value(t).norm() for t in gradients]
        norms = torch._foreach_norm(gradients)
        torch.testing.assert_close([full_value(n) for n in norms], wanted)
        made = torch.nn.utils.get_total_norm(gradients, foreach=True)
        torch.testing.assert_close(full_value(made), torch.stack(wanted).norm())

    def test_ranks_without_images_or_rows(self):
        x = distribute_tensor(torch.randn(2, 3, 8, 8), self.line, [Shard(0)])
        for run in (
            lambda x: F.avg_pool2d(x, 2),
            lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
            lambda x: x.amin((1, 2, 3)),
            lambda x: x.argmax(1),
        ):
            made = run(x)
            self.assertEqual(made.placements, (Shard(0),))
            torch.testing.assert_close(full_value(made), run(full_value(x)))

    def test_losses_of_classes_add_up(self):
        x = distribute_tensor(torch.randn(6, 5), self.line, [Shard(0)])
        target = distribute_tensor(torch.arange(6) % 5, self.line, [Shard(0)])
        made = F.nll_loss(x, target, reduction="sum", ignore_index=2)
        self.assertTrue(made.placements[0].is_partial())
        expected = F.nll_loss(
            full_value(x), full_value(target), reduction="sum", ignore_index=2
        )
        torch.testing.assert_close(full_value(made), expected)

    def test_right_sides_are_solved_apart(self):
        a = torch.randn(3, 3).tril() + 4 * torch.eye(3)
        b = torch.randn(3, 7)
        d = distribute_tensor(b, self.line, [Shard(1)])
        whole_a = distribute_tensor(a, self.line, [R])
        made = torch.linalg.solve_triangular(whole_a, d, upper=False)
        self.assertEqual(made.placements, (Shard(1),))
        expected = torch.linalg.solve_triangular(a, b, upper=False)
        torch.testing.assert_close(full_value(made), expected)

    def test_a_slice_of_the_operator_suite(self):
        try:
            import expecttest  # noqa: F401  # of PyTorch's own test library
        except ImportError:
            self.skipTest("there is no expecttest")
        chosen = random.Random(5).sample(SUITE, 12)
        options = argparse.Namespace(
            samples=2, placements=4, uneven=True, seconds=60
        )
        for op in dtensor_ops.load_suite(dtensor_ops.SIZES):
            if dtensor_ops.label(op) in chosen:
                with self.subTest(op=dtensor_ops.label(op)):
                    row = dtensor_ops.run_op(op, self.line, options)
                    self.assertGreater(row["ran"], 0)
                    self.assertEqual(row["why"], [])

    def test_sharding_of_strided_shards_stays(self):
        x = torch.randn(4, 4, 8, 8)
        d = distribute_tensor(x, self.grid, [Shard(0), Shard(1)])
        flat = d.view(16, 8, 8)
        product = torch.bmm(flat, flat)
        self.assertFalse(any(p.is_partial() for p in product.placements))
        torch.testing.assert_close(full_value(product), x.view(16, 8, 8) @ x.view(16, 8, 8))

    def test_features_take_the_places_of_tokens(self):
        tokens, mask = torch.randn(4, 6, 2), torch.rand(4, 6, 1) < 0.5
        self.check(torch.masked_scatter, [tokens, mask, torch.randn(50)])

    def test_a_number_comes_from_whole_tensors(self):
        x = torch.randn(8, 4)
        for y, close in ((x + 1e-9, True), (x.roll(1, 0), False)):
            self.check(
                lambda a, b: a.new_full((1,), torch.allclose(a, b, atol=1e-6)), [x, y]
            )
            self.assertEqual(torch.allclose(x, y, atol=1e-6), close)

    def test_copies_of_views(self):
        # A local size of 1 is no size of 1.
        self.check(torch.squeeze_copy, [torch.randn(4, 1, 8)])
        self.check(lambda x: torch.unbind_copy(x, 1)[1], [torch.randn(8, 3)])

    def test_in_place_on_a_partial_tensor(self):
        a, b = torch.randn(4, 8), torch.randn(8, 4)
        given = [distribute_tensor(a, self.line, [Shard(1)])]
        given.append(distribute_tensor(b, self.line, [Shard(0)]))
        product = torch.mm(*given)
        view = product.view(16)
        product.abs_()
        torch.testing.assert_close(full_value(product), (a @ b).abs())
        torch.testing.assert_close(full_value(view), (a @ b).abs().view(16))

    def test_plain_indices_count_as_replicated(self):
        x = torch.randn(6, 3, 5)
        shardprop.torch.install_propagator(implicit_replication=True)
        try:
            self.check(lambda x: x[[4, 0, 3]], [x])
            self.check(lambda x: x[:, [2, 0]], [x])
        finally:
            type(self).ours = shardprop.torch.install_propagator()

    def test_indices_of_some_dims(self):
        # The cut dim is the one that is looked up: a local program runs.
        x, rows = torch.randn(8, 4, 8), torch.tensor([3, 0])
        self.check(lambda x, i: x[:, i], [x, rows])
        self.check(lambda x, i: x[:, :, i], [x, rows])

    def test_sizes_that_values_tell(self):
        x = torch.randn(8, 6)
        before = self.ours.statistics.gathered
        self.check(torch.nonzero, [x])
        self.assertGreater(self.ours.statistics.gathered, before)
        self.check(lambda x: x[x > 0], [x])
        self.check(lambda x: x[x[:, 0] > 0], [x])
        self.check(torch.masked_select, [x, x > 0])
        self.check(lambda x: torch.unique(x.round(), return_counts=True)[1], [x])
        self.check(torch.repeat_interleave, [x[:, 0], torch.arange(8)])
        # Again, with other sizes: the answer is asked for once.
        first, second = (
            torch.nonzero(distribute_tensor(t, self.line, [Shard(0)]))
            for t in (x.relu(), torch.ones(8, 6))
        )
        self.assertEqual(second.shape, (48, 2))
        self.assertEqual(first.shape, full_value(first).shape)
        self.assertLess(len(first), 48)

    def test_unknown_operators_are_gathered_where_asked_for(self):
        x = torch.rand(8, 6)
        shardprop.torch.install_propagator(unknown="gather")
        try:
            pdist_backward = torch.ops.aten._pdist_backward.default
            distances = torch.rand(28)
            self.check(lambda x, d: pdist_backward(d, x, 2.0, d), [x, distances])
            with self.assertRaisesRegex(NotImplementedError, "shardprop"):
                # Each rank would draw its own.
                torch._standard_gamma(distribute_tensor(x, self.line, [Shard(0)]))
        finally:
            type(self).ours = shardprop.torch.install_propagator()

    def test_results_of_rare_dtypes(self):
        self.check(torch.hash_tensor, [torch.randn(6, 8)])

    def test_histograms_of_points_add_up(self):
        self.check(
            lambda x: torch.histogramdd(x, [3, 4], range=[-1.0, 1.0, -1.0, 1.0])[0],
            [torch.randn(9, 2)],
        )

    def test_uninstall_restores(self):
        dispatcher = DTensor._op_dispatcher
        ours = dispatcher.sharding_propagator
        shardprop.torch.uninstall_propagator()
        try:
            stock = dispatcher.sharding_propagator
            self.assertIsNot(stock, ours)
            self.assertIn(torch.ops.aten.convolution.default, dispatcher._custom_op_handlers)
            d = distribute_tensor(torch.randn(6, 8), self.line, [Shard(1)])
            self.assertEqual(torch.softmax(d, -1).placements, (R,))
        finally:
            type(self).ours = shardprop.torch.install_propagator()

    def test_what_neither_knows_says_both_reasons(self):
        d = distribute_tensor(torch.randn(4, 4), self.line, [Shard(0)])
        with self.assertRaises(NotImplementedError) as caught:
            torch.ops.aten._compute_linear_combination(d, d)
        self.assertIn("shardprop", str(caught.exception))

    def test_random_numbers_are_left_to_stock(self):
        rates = distribute_tensor(torch.rand(8, 6), self.line, [R])
        with self.assertRaisesRegex(NotImplementedError, "random numbers"):
            torch.poisson(rates)  # replicas would differ
        x = torch.randn(8, 6)
        noise = torch.zeros(8, 6)
        rrelu = torch.ops.aten.rrelu_with_noise.default
        before = self.ours.statistics.ours
        self.check(lambda x, n: rrelu(x, n, 0.1, 0.3, False), [x, noise])
        self.assertGreater(self.ours.statistics.ours, before)

    def test_tensors_on_several_meshes_are_refused(self):
        x = torch.randn(8, 6)
        on_line = distribute_tensor(x, self.line, [Shard(0)])
        on_square = distribute_tensor(x > 0, self.grid, [Shard(0), R])
        with self.assertRaisesRegex(RuntimeError, "several meshes"):
            torch.masked_select(on_line, on_square)


if __name__ == "__main__":
    unittest.main()
