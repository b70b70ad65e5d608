"""Compares redistribution plans with PyTorch's own two planners.

  python tests/torch/test_redistribute_planners.py \\
      --bin build/tests/oracle/redistribute_prices

The same random pairs of layouts go to PyTorch's greedy planner (its default),
to its graph planner (Dijkstra's search) and to shardprop; every path is priced
by shardprop's cost model. Prints how often and by how much each is beaten and
what planning takes; exits 1 if PyTorch is ever cheaper, or takes a step that
no single collective is.
"""

import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor import _redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.testing._internal.distributed.fake_pg import FakeStore

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESHES = ((8,), (2, 4), (4, 8), (3, 2), (2, 2, 2), (2, 4, 8), (4, 2, 3))
SHAPES = ((4096, 4096), (64, 48), (8, 2048, 512), (5, 7), (1 << 20,), (13, 6, 4))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bin",
        default=os.environ.get(
            "SHARDPROP_PRICES", str(ROOT / "build/tests/oracle/redistribute_prices")
        ),
    )
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--seed", type=int, default=20261120)
    return parser.parse_args()


def random_placements(rng, ndim, rank, partial):
    kinds = [Replicate()] + [Shard(d) for d in range(rank)]
    if partial:
        kinds.append(Partial("sum"))
    return tuple(rng.choice(kinds) for _ in range(ndim))


def layout_text(placements, order):
    """The layout in shardprop's notation, shard order included."""
    places = {}
    for entry in order:
        for place, mesh_dim in enumerate(entry.mesh_dims):
            places[mesh_dim] = place
    texts = []
    for mesh_dim, placement in enumerate(placements):
        if placement.is_replicate():
            texts.append("R")
        elif placement.is_partial():
            texts.append(f"P({placement.reduce_op})")
        else:
            texts.append(f"S({placement.dim})@{places[mesh_dim]}")
    return ",".join(texts)


def torch_path(mesh, meta, source, target, graph):
    """The layouts PyTorch goes through, and the seconds it took to plan."""
    specs = [DTensorSpec(mesh, p, tensor_meta=meta) for p in (source, target)]
    _redistribute.clear_redistribute_planner_cache()
    start = time.perf_counter()
    steps = _redistribute._gen_transform_infos_non_cached(
        *specs, use_graph_based_transform=graph
    )
    seconds = time.perf_counter() - start
    placements = list(source)
    planner = _redistribute.DTensorRedistributePlanner
    order = planner._ShardOrder_to_dict(specs[0].shard_order)
    path = [layout_text(placements, specs[0].shard_order)]
    for step in steps:
        _redistribute._update_shard_order_and_placements(step, placements, order)
        path.append(layout_text(placements, planner._dict_to_ShardOrder(order)))
    if tuple(placements) != tuple(target):
        raise AssertionError(f"PyTorch ends at {placements}, not {target}")
    return path, seconds


class Prices:
    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, mesh, tensor, path):
        """Nanoseconds of shardprop's plan, of the path, and of planning."""
        print(mesh, tensor, *path, sep="\t", file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("redistribute_prices ended")
        return tuple(int(word) for word in line.split())


def main():
    arguments = parse_arguments()
    rng = random.Random(arguments.seed)
    world = max(torch.tensor(shape).prod().item() for shape in MESHES)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    meshes = {
        shape: DeviceMesh(
            "cpu", torch.arange(torch.tensor(shape).prod().item()).view(shape)
        )
        for shape in MESHES
    }
    prices = Prices(arguments.bin)
    failures = 0
    print(f"PyTorch {torch.__version__}, {arguments.pairs} pairs, priced alike")
    ratios = {"greedy": [], "graph": []}
    took = {"greedy": [], "graph": [], "shardprop": []}
    for _ in range(arguments.pairs):
        shape = rng.choice(MESHES)
        sizes = rng.choice(SHAPES)
        source = random_placements(rng, len(shape), len(sizes), True)
        target = random_placements(rng, len(shape), len(sizes), False)
        if source == target:
            continue
        mesh_text = ",".join(map(str, shape))
        tensor = f"bf16[{','.join(map(str, sizes))}]"
        meta = TensorMeta(
            torch.Size(sizes),
            torch.empty(sizes, device="meta").stride(),
            torch.bfloat16,
        )
        for name, graph in (("greedy", False), ("graph", True)):
            path, seconds = torch_path(meshes[shape], meta, source, target, graph)
            ours, theirs, planning = prices(mesh_text, tensor, path)
            took[name].append(seconds * 1e6)
            took["shardprop"].append(planning / 1e3)
            if theirs < ours:
                failures += 1
                what = "is no collective" if theirs < 0 else f"{theirs} < {ours} ns"
                print(f"{name}: {mesh_text} {tensor} {' -> '.join(path)}: {what}")
            elif theirs > 0:
                ratios[name].append(theirs / ours if ours else float("inf"))
    for name, values in ratios.items():
        beaten = sorted(value for value in values if value > 1)
        finite = [value for value in beaten if value != float("inf")]
        print(
            f"{name}: beaten on {len(beaten)} of {len(values)} pairs "
            f"({100 * len(beaten) / len(values):.0f} %), by a factor of "
            f"{statistics.median(finite):.2f} in the median, "
            f"{statistics.geometric_mean(finite):.2f} in the geometric mean, "
            f"{max(finite):.2f} at most"
        )
    for name, values in took.items():
        print(f"planning, uncached: {name} {statistics.median(values):.1f} us")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
