"""Tests that meshes and local regions agree with PyTorch's on random cases.

  SHARDPROP_ORACLE=build/release/tests/oracle/shardprop_oracle test_local_regions.py

PyTorch answers by torch.distributed's DeviceMesh and DTensor, and the library
answers by the oracle. The test translates three differences of notation:

* An empty shard has no start. PyTorch gives the end of the dim, the library no
  run. Sizes are compared, offsets are not.
* PyTorch shards in the order of the mesh dims. For another shard order it gets
  the mesh dims in that order. If all shards are even, the strided form that
  PyTorch itself derives from the order must give the same.
* Strided shards are compared if they are even. PyTorch has no settled answer for
  uneven ones.
"""

import contextlib
import json
import math
import os
import pathlib
import random
import subprocess
import unittest

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLE = os.environ.get(
    "SHARDPROP_ORACLE", str(ROOT / "build/release/tests/oracle/shardprop_oracle")
)
CASES = int(os.environ.get("SHARDPROP_CASES", "4000"))  # of each of four tests
SEED = 2026


def ask(questions):
    """The oracle's answers, in order."""
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([ORACLE], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def named(sizes):
    return [[f"d{index}", size] for index, size in enumerate(sizes)]


def draw_sizes(rng, largest):
    return [rng.choice(range(1, largest + 1)) for _ in range(rng.randint(1, 4))]


def draw_coordinate(rng, sizes):
    return [rng.randrange(size) for size in sizes]


def rank_of(coordinate, sizes):
    rank = 0
    for index, size in zip(coordinate, sizes, strict=True):
        rank = rank * size + index
    return rank


def draw_cuts(rng, mesh_dims, tensor_dims):
    """Per mesh dim the tensor dim it cuts, or None."""
    return [
        rng.choice([None, *range(tensor_dims), *range(tensor_dims)])
        for _ in range(mesh_dims)
    ]


def draw_shard_order(rng, cuts):
    """Mesh dims by tensor dim, in the order of their cuts."""
    orders = {}
    for mesh_dim, tensor_dim in enumerate(cuts):
        if tensor_dim is not None:
            orders.setdefault(tensor_dim, []).append(mesh_dim)
    for order in orders.values():
        rng.shuffle(order)
    return orders


def notation(cuts, orders):
    """The layout as the library prints it, one entry per mesh dim."""
    entries = []
    for mesh_dim, tensor_dim in enumerate(cuts):
        if tensor_dim is None:
            entries.append("R")
            continue
        order = orders[tensor_dim]
        place = f"@{order.index(mesh_dim)}" if order != sorted(order) else ""
        entries.append(f"S({tensor_dim}){place}")
    return entries


def local_size(runs):
    return sum(end - begin for begin, end in runs)


def in_cutting_order(shape, sizes, coordinate, cuts, orders):
    """PyTorch's (local shape, offset), its mesh dims permuted to the cuts."""
    sequence = [mesh_dim for order in orders.values() for mesh_dim in order]
    return _compute_local_shape_and_global_offset(
        shape,
        [sizes[d] for d in sequence],
        [coordinate[d] for d in sequence],
        [Shard(cuts[d]) for d in sequence],
    )


def elements(size, placements, sizes, coordinate):
    """The elements of a dim that a rank holds, cut by PyTorch itself."""
    held = torch.arange(size)
    for placement, count, index in zip(placements, sizes, coordinate, strict=True):
        if placement is not None:
            shards, _ = placement._split_tensor(held, count, with_padding=False)
            held = shards[index]
    return held.tolist()


class LocalRegions(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(SEED)

    def test_shards_of_any_order_and_size(self):
        """Shape and offset, empty and uneven shards included."""
        questions, expected = [], []
        for _ in range(CASES):
            sizes = draw_sizes(self.rng, 4)
            shape = [self.rng.randrange(0, 20) for _ in range(self.rng.randint(1, 3))]
            coordinate = draw_coordinate(self.rng, sizes)
            cuts = draw_cuts(self.rng, len(sizes), len(shape))
            orders = draw_shard_order(self.rng, cuts)
            questions.append(
                {
                    "mesh": named(sizes),
                    "rank": rank_of(coordinate, sizes),
                    "shape": shape,
                    "layout": notation(cuts, orders),
                }
            )
            expected.append(in_cutting_order(shape, sizes, coordinate, cuts, orders))
        uneven = 0
        for question, answer, (shape, offset) in zip(
            questions, ask(questions), expected, strict=True
        ):
            with self.subTest(**question):
                self.assertEqual([local_size(r) for r in answer["runs"]], list(shape))
                for runs, begin in zip(answer["runs"], offset, strict=True):
                    if runs:
                        self.assertEqual(runs[0][0], begin)
            ranks = math.prod(size for _, size in question["mesh"])
            uneven += math.prod(shape) * ranks != math.prod(question["shape"])
        # Replicated dims make it differ too; most of all cases must not be even.
        self.assertGreater(uneven, CASES // 2)

    def test_shard_order_is_what_pytorch_makes_of_it(self):
        """An order and the strided shards PyTorch writes for it, where even."""
        questions, expected = [], []
        for _ in range(CASES):
            sizes = draw_sizes(self.rng, 3)
            coordinate = draw_coordinate(self.rng, sizes)
            cuts = draw_cuts(self.rng, len(sizes), 2)
            orders = draw_shard_order(self.rng, cuts)
            shape = [math.prod(sizes) * self.rng.randint(1, 3) for _ in range(2)]
            mesh = DeviceMesh(
                "cpu",
                torch.arange(math.prod(sizes)).view(sizes),
                _init_backend=False,
                _rank=rank_of(coordinate, sizes),
            )
            strided = DTensorSpec._convert_shard_order_to_StridedShard(
                tuple(ShardOrderEntry(d, tuple(o)) for d, o in orders.items()),
                tuple(Replicate() if c is None else Shard(c) for c in cuts),
                mesh,
            )
            questions.append(
                {
                    "mesh": named(sizes),
                    "rank": rank_of(coordinate, sizes),
                    "shape": shape,
                    "layout": notation(cuts, orders),
                }
            )
            expected.append(
                _compute_local_shape_and_global_offset(
                    shape, sizes, coordinate, strided
                )
            )
        for question, answer, (shape, offset) in zip(
            questions, ask(questions), expected, strict=True
        ):
            with self.subTest(**question):
                self.assertEqual([local_size(r) for r in answer["runs"]], list(shape))
                begins = [runs[0][0] for runs in answer["runs"]]
                self.assertEqual(begins, list(offset))

    def test_strided_shards_hold_the_same_elements(self):
        """Every element, in local order, where shards are even."""
        questions, expected = [], []
        for _ in range(CASES):
            sizes = draw_sizes(self.rng, 3)
            coordinate = draw_coordinate(self.rng, sizes)
            placements, entries, size = [], [], self.rng.randint(1, 3)
            for count in sizes:
                factor = self.rng.choice((0, 1, 2, 3, 4))
                size *= count * max(factor, 1)
                if factor == 0:
                    placements.append(None)
                    entries.append("R")
                elif factor == 1:
                    placements.append(Shard(0))
                    entries.append("S(0)")
                else:
                    placements.append(_StridedShard(0, split_factor=factor))
                    entries.append(f"SS(0,{factor})")
            questions.append(
                {
                    "mesh": named(sizes),
                    "rank": rank_of(coordinate, sizes),
                    "shape": [size],
                    "layout": entries,
                }
            )
            expected.append(elements(size, placements, sizes, coordinate))
        for question, answer, held in zip(
            questions, ask(questions), expected, strict=True
        ):
            with self.subTest(**question):
                (runs,) = answer["runs"]
                self.assertEqual([i for b, e in runs for i in range(b, e)], held)


@contextlib.contextmanager
def fake_process_group(rank, world_size):
    """Creates a process group in which this process is `rank` and sends no
    data."""
    dist.init_process_group(
        "fake", store=FakeStore(), rank=rank, world_size=world_size
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


class Meshes(unittest.TestCase):
    WORLD = 512
    RANKS = 20

    def setUp(self):
        self.rng = random.Random(SEED)

    def draw_ranks(self, sizes):
        """Ranks in order, offset, transposed or any."""
        count = math.prod(sizes)
        kind = self.rng.choice(("in order", "offset", "transposed", "any"))
        if kind == "offset":
            return torch.arange(count).view(sizes) + self.rng.randrange(1, 20)
        if kind == "transposed":
            dims = self.rng.sample(range(len(sizes)), len(sizes))
            places = [dims.index(d) for d in range(len(sizes))]
            return torch.arange(count).view([sizes[d] for d in dims]).permute(places)
        if kind == "any":
            return torch.tensor(self.rng.sample(range(2 * count), count)).view(sizes)
        return torch.arange(count).view(sizes)

    def draw_case(self, rank):
        """Returns a question about a rank, and PyTorch's answer."""
        sizes = draw_sizes(self.rng, 4)
        names = [name for name, _ in named(sizes)]
        ranks = self.draw_ranks(sizes)
        mesh = DeviceMesh("cpu", ranks, mesh_dim_names=tuple(names))
        question = {
            "mesh": named(sizes),
            "ranks": ranks.flatten().tolist(),
            "rank": rank,
        }
        if mesh.get_coordinate() is None:
            return question, {"coordinate": None}
        kept = self.rng.sample(names, self.rng.randint(1, len(names)))
        kept.sort(key=names.index)  # PyTorch slices in no other order
        question["slice"] = kept
        question["flatten"] = self.rng.random() < 0.5
        sub = mesh[tuple(kept)]
        if question["flatten"]:
            sub = sub._flatten("flat")
        return question, {
            "coordinate": list(mesh.get_coordinate()),
            "sizes": list(sub.shape),
            "ranks": sub.mesh.flatten().tolist(),
        }

    def test_coordinates_slices_and_flattened_dims(self):
        questions, expected = [], []
        for rank in range(self.RANKS):
            with fake_process_group(rank, self.WORLD):
                for _ in range(CASES // self.RANKS):
                    question, wanted = self.draw_case(rank)
                    questions.append(question)
                    expected.append(wanted)
        for question, answer, wanted in zip(
            questions, ask(questions), expected, strict=True
        ):
            with self.subTest(**question):
                self.assertEqual(answer, wanted)


if __name__ == "__main__":
    unittest.main()
