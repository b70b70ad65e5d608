#!/usr/bin/env python3
"""Eager DTensor with our propagator: what would be wrong without an error.

Layouts that DTensor cannot reassemble, writes into views that are copies, numbers
of partial sums, tokens in another order, tensors on two meshes. One process plays
four ranks (LocalTensorMode on the fake backend). Needs the Python package of a
build, named by $SHARDPROP_PACKAGE.
"""

import itertools
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
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.placement_types import _StridedShard

from running import package  # noqa: F401
from running.ranks import run_ranks
from running.simulated import WORLD, SimulatedWithPropagator, full_value
import shardprop.torch
from shardprop.torch._specs import can_reassemble

from eager_calls import distribute

R = Replicate()
MATRIX_PLACEMENTS = (R, Shard(0), Shard(1), Partial())


def arange(*shape):
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape)


def strided(tensor, mesh, placements):
    """A DTensor in a layout of strided shards, sharded mesh dim by mesh dim."""
    parts = {(): tensor}
    for size, placement in zip(mesh.shape, placements):
        parts = {
            (*at, i): part
            for at, outer in parts.items()
            for i, part in enumerate(
                [outer] * size
                if placement.is_replicate()
                else placement._split_tensor(outer, size, with_padding=False)[0]
            )
        }
    ranks = mesh.mesh.flatten().tolist()
    local = LocalTensor({r: part.clone() for r, part in zip(ranks, parts.values())})
    return DTensor.from_local(
        local,
        mesh,
        placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def check_flat_view(mesh, shape, layout):
    """Checks a flat view of a tensor, and what is computed from the view."""
    x = arange(*shape)
    flat = distribute(x, mesh, layout).view(-1)
    torch.testing.assert_close(full_value(flat), x.view(-1))
    torch.testing.assert_close(full_value(flat * 2), x.view(-1) * 2)
    torch.testing.assert_close(full_value(flat.view(shape)), x)
    torch.testing.assert_close(full_value(flat.sum()), x.sum())


def wrong_flat_views_of_dims_of_size_1():
    """The shapes and layouts of a 2x2 mesh whose flat views are wrong, and why."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    shardprop.torch.install_propagator()
    wrong = []
    for shape in ((3, 1), (1, 3), (1, 1), (2, 1), (8, 1)):
        for layout in itertools.product(MATRIX_PLACEMENTS, repeat=2):
            try:
                check_flat_view(mesh, shape, layout)
            except Exception as error:
                wrong.append((shape, str(layout), str(error)))
    shardprop.torch.uninstall_propagator()
    return wrong


def wrong_comparisons():
    """The layouts of a 2x2 mesh in which torch.equal() or is_same_size() is wrong."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    shardprop.torch.install_propagator()
    x = arange(5, 3)
    last = x.clone()
    last[-1, -1] += 1
    wrong = []
    layouts = itertools.product(MATRIX_PLACEMENTS, repeat=2)
    for layout, other in itertools.product(layouts, ([R, R], [Shard(0), R])):
        a = distribute(x, mesh, layout)
        same = distribute(x, mesh, other, seed=3)
        apart = distribute(last, mesh, other, seed=3)
        found = torch.equal(a, same), torch.equal(a, apart), a.is_same_size(same)
        if found != (True, False, True):
            wrong.append((str(layout), str(other), found))
    shardprop.torch.uninstall_propagator()
    return wrong


def context_parallel_on_cpu():
    """The largest difference of attention in a context_parallel region from plain
    attention, or the error; then whether attention after the region is right."""
    mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("cp",))
    torch.manual_seed(0)
    wanted_of = torch.randn(3, 2, 4, 16, 8)
    wanted = F.scaled_dot_product_attention(*wanted_of, is_causal=True)

    def sharded():
        q, k, v = (distribute_tensor(t, mesh, [Shard(2)]) for t in wanted_of)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (made.full_tensor() - wanted).abs().max().item()

    def in_region():
        q, k, v = (t.clone() for t in wanted_of)
        with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]):
            F.scaled_dot_product_attention(q, k, v, is_causal=True)

    shardprop.torch.install_propagator()
    errors = []
    differences = [sharded()]
    for _ in range(2):
        try:
            in_region()
            errors.append("")
        except Exception as error:
            errors.append(str(error))
        differences.append(sharded())
    shardprop.torch.uninstall_propagator()
    return errors, differences


class OnGloo(unittest.TestCase):
    def test_comparisons_of_whole_tensors(self):
        for wrong in run_ranks(WORLD, wrong_comparisons):
            self.assertEqual(wrong, [])

    def test_flat_views_of_dims_of_size_1(self):
        """Some ranks hold parts that are empty in one dim only."""
        for wrong in run_ranks(WORLD, wrong_flat_views_of_dims_of_size_1):
            self.assertEqual(wrong, [])

    def test_context_parallel_on_cpu_is_refused(self):
        for errors, differences in run_ranks(WORLD, context_parallel_on_cpu):
            for error in errors:
                self.assertIn("context_parallel", error)
            self.assertLess(max(differences), 1e-5)


class Layouts(SimulatedWithPropagator):
    def strided_layouts(self, sizes):
        kinds = [R, Shard(0), *(_StridedShard(0, split_factor=k) for k in (2, 3, 7))]
        layouts = list(itertools.product(kinds, repeat=2))
        for size, layout in itertools.product(sizes, layouts):
            if any(isinstance(p, _StridedShard) for p in layout):
                yield size, layout

    def test_what_is_accepted_is_reassembled(self):
        """By DTensor alone, and by our redistributions."""
        accepted = 0
        for size, layout in self.strided_layouts((4, 5, 7, 8, 12, 63)):
            if not can_reassemble(layout, self.grid, (size,)):
                continue
            accepted += 1
            x = arange(size)
            given = strided(x, self.grid, layout)
            with self.subTest(size=size, layout=str(layout)):
                torch.testing.assert_close(full_value(given), x)
                for wanted in itertools.product([R, Shard(0)], repeat=2):
                    moved = given.redistribute(placements=wanted)
                    torch.testing.assert_close(full_value(moved), x)
                shardprop.torch.uninstall_propagator()
                try:
                    torch.testing.assert_close(full_value(given), x)
                finally:
                    shardprop.torch.install_propagator()
        self.assertGreater(accepted, 40)

    def test_nested_strided_shards_are_not_accepted(self):
        strided_7 = _StridedShard(0, split_factor=7)
        for size in (63, 28, 56):
            nested = (strided_7, strided_7)
            self.assertFalse(can_reassemble(nested, self.grid, (size,)))
            self.assertTrue(can_reassemble((strided_7, R), self.grid, (size,)))
        self.assertTrue(can_reassemble((Shard(0), strided_7), self.grid, (28,)))
        self.assertFalse(can_reassemble((Shard(0), strided_7), self.grid, (63,)))

    def test_flat_views_of_nested_shards(self):
        for shape in ((7, 9), (5, 3), (9, 2), (8, 6), (4, 6), (2, 8), (3, 1)):
            for layout in itertools.product(MATRIX_PLACEMENTS, repeat=2):
                with self.subTest(shape=shape, layout=str(layout)):
                    check_flat_view(self.grid, shape, layout)

    def test_views_of_another_dtype(self):
        """DTensor's own answer keeps partial sums, whose bits do not add up."""
        dtypes = (torch.int8, torch.int32, torch.int64, torch.float64)
        for dtype, shape in itertools.product(dtypes, ((8,), (9, 3), (4, 2))):
            x = arange(*shape).double()
            placements = {R, Shard(0), Shard(len(shape) - 1), Partial()}
            for layout in itertools.product(placements, repeat=2):
                with self.subTest(dtype=dtype, shape=shape, layout=str(layout)):
                    viewed = distribute(x, self.grid, layout).view(dtype)
                    self.assertTrue(torch.equal(full_value(viewed), x.view(dtype)))


class Numbers(SimulatedWithPropagator):
    def test_numbers_of_partials_and_uneven_shards(self):
        runs = {
            "sum": lambda t: t.sum(),
            "mean": lambda t: t.mean(),
            "max": lambda t: t.max(),
            "mse": lambda t: F.mse_loss(t, t * 0),
            "norm": torch.linalg.vector_norm,
            "var": lambda t: t.var(),
            "all": lambda t: (t >= 0).all(),
            "count": lambda t: (t > 3).sum(),
        }
        for n, (name, run) in itertools.product((10, 8, 3), runs.items()):
            x = arange(n, 1)
            for layout in ([Shard(0)], [R], [Partial()]):
                d = distribute(x, self.line, layout)
                with self.subTest(n=n, name=name, layout=str(layout)):
                    self.assertAlmostEqual(run(d).item(), run(x).item(), 4)
                    self.assertAlmostEqual(float(run(d)), float(run(x)), 4)
                    self.assertEqual(bool(run(d)), bool(run(x)))


class Gradients(SimulatedWithPropagator):
    def test_determinants_and_solutions_of_matrices_in_any_storage(self):
        functions = (
            torch.linalg.det,
            lambda z: torch.linalg.slogdet(z)[1],
            lambda z: torch.linalg.solve(z, z.new_ones(2)).sum(),
        )
        storages = (
            lambda x: x.flatten(1)[:2, :2],
            lambda x: x.flatten(1)[:2, :2].t(),
            lambda x: x.flatten(1)[:2, :2].contiguous(),
        )
        grids = itertools.product((R, Shard(0)), repeat=2)
        for layout, f, stored in itertools.product(grids, functions, storages):
            with self.subTest(layout=layout, f=f, stored=stored):
                torch.manual_seed(3)
                x = torch.randn(5, 3, 4).requires_grad_()
                d = distribute_tensor(x.detach(), self.grid, layout).requires_grad_()
                f(stored(x)).pow(2).backward()
                f(stored(d)).pow(2).backward()
                torch.testing.assert_close(full_value(d.grad), x.grad)


class Writes(SimulatedWithPropagator):
    VIEWS = {
        "x[2:4]": lambda x: x[2:4],
        "x[1]": lambda x: x[1],
        "x[:, 3]": lambda x: x[:, 3],
        "unbind": lambda x: x.unbind(0)[2],
        "split": lambda x: x.split(3)[1],
        "view": lambda x: x.view(2, 4, 8),
        "flat": lambda x: x.view(-1),
        "t": lambda x: x.t(),
        "t then row": lambda x: x.t()[2],
        "row then slice": lambda x: x[1][2:5],
        "detached row": lambda x: x[1].detach(),
        "diagonal": lambda x: x.diagonal(),
    }
    WRITES = {
        "add_": lambda v: v.add_(5),
        "fill_": lambda v: v.fill_(3),
        "set": lambda v: v.__setitem__(slice(None), 2),
        "copy_": lambda v: v.copy_(v * 0 + 7),
        "foreach": lambda v: torch._foreach_mul_([v], 2),
        "out": lambda v: torch.add(v, 1, out=v),
    }

    def test_a_write_through_a_view_arrives_or_is_refused(self):
        arrived = refused = 0
        layouts = list(itertools.product([R, Shard(0), Shard(1)], repeat=2))
        for view, write in itertools.product(self.VIEWS, self.WRITES):
            wanted = arange(8, 8)
            self.WRITES[write](self.VIEWS[view](wanted))
            for layout in layouts:
                x = distribute_tensor(arange(8, 8), self.grid, layout)
                with self.subTest(view=view, write=write, layout=str(layout)):
                    try:
                        self.WRITES[write](self.VIEWS[view](x))
                    except RuntimeError as error:
                        if "a view that is a copy" not in str(error):
                            continue  # stock's refusals
                        self.assertNotIn(" object at 0x", str(error))
                        refused += 1
                        torch.testing.assert_close(full_value(x), arange(8, 8))
                        continue
                    arrived += 1
                    torch.testing.assert_close(full_value(x), wanted)
        self.assertGreater(arrived, 300)
        self.assertGreater(refused, 50)

    READS = {
        "operator": lambda v: v * 1,
        "view": lambda v: v.unsqueeze(0)[0] * 1,
        "list": lambda v: torch.stack([v, v])[1],
        "full_tensor": lambda v: v,
    }

    def test_a_write_into_the_source_shows_in_its_views_or_they_are_refused(self):
        """Foreach operators do not raise the version of a DTensor: a known limit."""
        shown = refused = 0
        layouts = list(itertools.product([R, Shard(0), Shard(1)], repeat=2))
        writes = {name: write for name, write in self.WRITES.items() if name != "foreach"}
        reads = itertools.cycle(self.READS)
        for view, write in itertools.product(self.VIEWS, writes):
            written = arange(8, 8)
            writes[write](written)
            wanted = self.VIEWS[view](written)
            for layout, read in zip(layouts, reads):
                x = distribute_tensor(arange(8, 8), self.grid, layout)
                made = self.VIEWS[view](x)
                writes[write](x)
                with self.subTest(view=view, write=write, layout=str(layout), read=read):
                    try:
                        value = full_value(self.READS[read](made))
                    except RuntimeError as error:
                        self.assertIn("its source was written after", str(error))
                        refused += 1
                        continue
                    shown += 1
                    torch.testing.assert_close(value, wanted)
        self.assertGreater(shown, 150)
        self.assertGreater(refused, 100)

    def test_a_stale_view_has_no_local_tensor(self):
        x = distribute_tensor(arange(8, 8), self.line, [Shard(0)])
        view = x[2]
        view.to_local()
        x.add_(1)
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                with self.assertRaisesRegex(RuntimeError, "was written after"):
                    view.to_local()
        torch.testing.assert_close(full_value(x[2]), arange(8, 8)[2] + 1)

    def test_a_view_that_is_made_again_is_fresh(self):
        d = distribute_tensor(arange(8, 8), self.line, [Shard(0)])
        for step in range(3):
            torch.testing.assert_close(full_value(d[2] * 1), arange(8, 8)[2] + step)
            d.add_(1)

    def test_views_that_are_copies_are_read_as_others(self):
        x = arange(8, 8)
        d = distribute_tensor(x, self.line, [Shard(0)])
        torch.testing.assert_close(full_value(d[2] * 2 + d[3]), x[2] * 2 + x[3])
        torch.testing.assert_close(full_value(d[2:5].sum(1)), x[2:5].sum(1))
        torch.testing.assert_close(full_value(d[2].clone().add_(1)), x[2] + 1)
        torch.testing.assert_close(full_value(torch.stack([d[1], d[2]])), x[1:3])

    def test_a_view_in_place_has_the_sizes_of_the_view(self):
        views = (
            lambda x: x.unsqueeze(0).squeeze_(0),
            lambda x: x.unsqueeze(0).squeeze_((0,)),
            lambda x: x.unsqueeze(0).squeeze_(),
            lambda x: x.unsqueeze_(1),
            lambda x: x.t_(),
            lambda x: x.swapaxes_(0, 1),
        )
        x = torch.randn(3, 4)
        for view, placement in itertools.product(views, MATRIX_PLACEMENTS):
            with self.subTest(view=view, placement=placement):
                made = view(distribute_tensor(x, self.line, [placement]))
                wanted = view(x.clone())
                self.assertEqual(made.shape, wanted.shape)
                self.assertEqual(made._spec.tensor_meta.shape, wanted.shape)
                torch.testing.assert_close(full_value(made.exp()), wanted.exp())
                made.add_(1)
                torch.testing.assert_close(full_value(made), wanted + 1)

    def test_gradients_pass_a_view_in_place(self):
        x = torch.randn(1, 8)
        plain = x.clone().requires_grad_()
        sharded = distribute_tensor(x, self.line, [Shard(1)]).requires_grad_()
        for tensor in (plain, sharded):
            (tensor * 2).squeeze_(0).unsqueeze_(1).t_().exp().sum().backward()
        torch.testing.assert_close(full_value(sharded.grad), plain.grad)

    def test_a_view_in_place_of_a_copy_is_refused(self):
        x = distribute_tensor(torch.randn(4, 3), self.line, [Shard(0)])
        with self.assertRaisesRegex(RuntimeError, "a view that is a copy"):
            x[2].unsqueeze_(0)

    def test_a_product_with_a_vector_is_viewed_in_place(self):
        x, w = torch.randn(8), torch.randn(8, 3)
        sharded = [distribute_tensor(t, self.line, [Shard(0)]) for t in (x, w)]
        made = (sharded[0] @ sharded[1]).relu()
        torch.testing.assert_close(full_value(made), (x @ w).relu())

    def test_the_refusal_names_the_operator(self):
        x = distribute(arange(12, 2, 5), self.grid, (Shard(1), Shard(0)))
        terms = distribute(arange(120, 1), self.grid, (Partial(), Partial()))
        with self.assertRaisesRegex(RuntimeError, r"aten\.add_\.Tensor writes into"):
            x.view(-1).unsqueeze(1).add_(terms)

    def test_the_refusal_does_not_depend_on_what_ran_before(self):
        """A write into an ordinary tensor of the same layout is in the caches."""
        d = distribute_tensor(arange(8, 8), self.line, [Shard(0)])
        view = d[2]
        like = distribute_tensor(arange(8), self.line, view.placements)
        like.add_(1)
        with self.assertRaisesRegex(RuntimeError, "a view that is a copy"):
            view.add_(1)
        like.add_(1)
        torch.testing.assert_close(full_value(like), arange(8) + 2)


class Meshes(SimulatedWithPropagator):
    def test_the_error_names_both_meshes(self):
        on_line = distribute_tensor(arange(8, 6), self.line, [Shard(0)])
        on_grid = distribute_tensor(arange(8, 6), self.grid, [Shard(0), R])
        with self.assertRaises(Exception) as caught:
            torch.add(on_line, on_grid)
        self.assertIn("dp=2,tp=2 (ranks 0 to 3)", str(caught.exception))
        self.assertIn("several meshes", str(caught.exception))

    def test_norms_on_two_meshes(self):
        """As clip_grad_norm_ takes them: their placements are DTensor's own."""
        tensors = [
            distribute_tensor(arange(8, 6), self.line, [Shard(0)]),
            distribute_tensor(arange(8, 6), self.grid, [Shard(0), Shard(1)]),
        ]
        with self.assertRaises(Exception) as caught:
            torch.nn.utils.get_total_norm(tensors, foreach=False)
        self.assertIn("several meshes", str(caught.exception))
        self.assertIn("dp=2,tp=2", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
