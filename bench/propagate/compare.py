#!/usr/bin/env python3
"""Compares propagation with torch's DTensor; both are measured in turn.

    compare.py build/release/bench/propagate/bench_propagate [ROUNDS]

These functions of torch are measured:

* the dispatch of `add` and `mm` on DTensors, with a fake process group and a few elements
  per rank, less the same op on plain tensors of that size;
* a dispatch that misses the cache;
* ShardingPropagator.propagate_op_sharding, its cached propagation in Python, less an empty
  call;
* ShardingPropagator.propagate_op_sharding_non_cached, the cost of a miss, less an empty call.

Every figure is a median over batches in each round, and then the best of the rounds, which
is the time on an idle machine. The script prints tables in Markdown.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg  # noqa: F401
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._op_schema import OpSchema


def per_call(run, calls, batches=15):
    """Nanoseconds a call, the median of batches."""
    run()
    times = []
    for _ in range(batches):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            run()
        times.append((time.perf_counter_ns() - begin) / calls)
    return statistics.median(times)


class Torch:
    def __init__(self):
        dist.init_process_group("fake", rank=0, world_size=32)
        self.mesh = init_device_mesh("cpu", (4, 8))
        self.rows = [Shard(0), Replicate()]
        self.columns = [Replicate(), Shard(1)]

    def tensor(self, shape, placements):
        local = list(shape)
        for size, placement in zip((4, 8), placements):
            if isinstance(placement, Shard):
                local[placement.dim] //= size
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(
            torch.zeros(local),
            self.mesh,
            placements,
            run_check=False,
            shape=torch.Size(shape),
            stride=stride,
        )

    def round(self):
        out = {}
        a = self.tensor((32, 16), self.rows)
        b = self.tensor((32, 16), self.rows)
        w = self.tensor((16, 32), self.columns)
        plain = a.to_local()
        plain_w = w.to_local()
        empty = per_call(lambda: None, 20000)
        out["dispatch_add"] = per_call(
            lambda: torch.add(a, b), 300
        ) - per_call(lambda: torch.add(plain, plain), 300)
        out["dispatch_mm"] = per_call(lambda: torch.mm(a, w), 300) - per_call(
            lambda: torch.mm(plain, plain_w), 300
        )
        propagator = DTensor._op_dispatcher.sharding_propagator
        schema = OpSchema(torch.ops.aten.add.Tensor, (a._spec, b._spec), {})
        cached = propagator.propagate_op_sharding
        out["cached_propagation_add"] = per_call(lambda: cached(schema), 2000) - empty
        product = OpSchema(torch.ops.aten.mm.default, (a._spec, w._spec), {})
        worked_out = propagator.propagate_op_sharding_non_cached
        out["uncached_propagation_mm"] = (
            per_call(lambda: worked_out(product), 20) - empty
        )
        sizes = iter(range(1, 100000))

        def miss():
            m = 32 * next(sizes)
            torch.mm(self.tensor((m, 16), self.rows), w)

        def made():
            m = 32 * next(sizes)
            self.tensor((m, 16), self.rows)

        out["dispatch_new_batch_mm"] = per_call(miss, 10) - per_call(made, 10)
        return out


def main():
    bench = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    peer = Torch()
    ours, theirs = [], []
    for i in range(rounds):
        arguments = [bench] if i == 0 else [bench, "quick"]
        ours.append(json.loads(subprocess.check_output(arguments, text=True)))
        theirs.append(peer.round())
    larger_is_better = {"two_threads_of_two_copies", "hot_hit_rate"}

    def best(rounds, key):
        values = [r[key] for r in rounds if key in r]
        return max(values) if key in larger_is_better else min(values)

    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"torch {torch.__version__}, best of {rounds} rounds, load {load}\n")
    for name, figures in (("shardprop", ours), ("DTensor", theirs)):
        print(f"| {name} | best | median of rounds |\n|---|---|---|")
        for key in figures[0]:
            values = [r[key] for r in figures if key in r]
            print(f"| {key} | {best(figures, key):.1f} | {statistics.median(values):.1f} |")
        print()
    for what, hers, mine in (
        ("DTensor's dispatch of add takes {:.0f} times a hit,", "dispatch_add", "hit_add_2d"),
        ("its cached propagation {:.0f} times a hit,", "cached_propagation_add", "hit_add_2d"),
        (
            "its uncached propagation of mm {:.0f} times a miss.",
            "uncached_propagation_mm",
            "miss_mm_2d_fits_new_shape",
        ),
    ):
        print(what.format(best(theirs, hers) / best(ours, mine)))


if __name__ == "__main__":
    main()
