#!/usr/bin/env python3
"""Measures the CPU time of eager DTensor's dispatch, with our propagator and
with stock's.

    SHARDPROP_PACKAGE=build/release/python/package python tests/torch/time_eager.py

Times one training step of a transformer block under tensor and data parallelism
on a fake process group of --mesh ranks. The group sends no data, so the times
are those of one rank's process. With --gloo every rank is a process and sends;
the figures are those of rank 0. Prints, of both in turns in the same run, the
first step (every call a miss), the median of the later ones (every call a hit),
and the operators whose time differs most.
"""

import argparse
import collections
import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor import distribute_tensor, init_device_mesh
from torch.utils._python_dispatch import TorchDispatchMode

from running import package  # noqa: F401
from running.ranks import run_ranks
import shardprop.torch


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        parts = [
            layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        ]
        scores = parts[0] @ parts[1].transpose(-2, -1) * 0.125
        mixed = torch.softmax(scores, -1) @ parts[2]
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def distribute(block, mesh):
    cut = {"q": 0, "k": 0, "v": 0, "up": 0, "out": 1, "down": 1}
    for name, layer in block.named_children():
        for key, value in list(layer.named_parameters()):
            tensor_dim = cut.get(name)
            if tensor_dim is None or (value.ndim == 1 and tensor_dim == 1):
                placed = Replicate()
            else:
                placed = Shard(tensor_dim)
            layer.register_parameter(
                key, nn.Parameter(distribute_tensor(value, mesh, [Replicate(), placed]))
            )
    return block


class PerOperator(TorchDispatchMode):
    """Records seconds by operator, DTensor's dispatch and the local kernel
    together."""

    def __init__(self):
        super().__init__()
        self.seconds = collections.defaultdict(list)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        began = time.perf_counter()
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.seconds[str(func)].append(time.perf_counter() - began)


def step(block, x):
    block.zero_grad()
    if dist.get_backend() == "gloo":
        dist.barrier()
    began = time.perf_counter()
    block(x).square().mean().backward()
    return time.perf_counter() - began


def measure(block, x, steps):
    first = step(block, x)
    later = [step(block, x) for _ in range(steps)]
    return first, statistics.median(later)


def compare(mesh_shape, width, steps, rounds):
    """Returns the seconds of (first step, median of the later) of each round
    for both, seconds by operator, and the operators that were left to stock."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=("dp", "tp"))
    heads = max(4, mesh_shape[1])
    block = distribute(Block(heads * (width // 4), heads), mesh)
    x = distribute_tensor(
        torch.randn(2 * mesh_shape[0], 16, heads * (width // 4)),
        mesh,
        [Shard(0), Replicate()],
    )
    figures = collections.defaultdict(list)
    by_operator = {"stock": PerOperator(), "ours": PerOperator()}
    for _ in range(rounds):
        for who in ("stock", "ours"):
            if who == "ours":
                ours = shardprop.torch.install_propagator()
            else:
                torch.distributed.tensor.debug._clear_sharding_prop_cache()
            figures[who].append(measure(block, x, steps))
            with by_operator[who]:
                for _ in range(steps):
                    step(block, x)
            if who == "ours":
                left = dict(ours.statistics.reasons)
                shardprop.torch.uninstall_propagator()
    seconds = {who: dict(mode.seconds) for who, mode in by_operator.items()}
    return dict(figures), seconds, left


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=int, nargs=2, default=(2, 2))
    parser.add_argument("--gloo", action="store_true", help="a process per rank")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ranks = options.mesh[0] * options.mesh[1]
    asked = (tuple(options.mesh), options.width, options.steps, options.rounds)
    if options.gloo:
        figures, by_operator, left = run_ranks(ranks, compare, *asked)[0]
    else:
        dist.init_process_group("fake", rank=0, world_size=ranks)
        figures, by_operator, left = compare(*asked)
    print(f"{ranks} ranks, milliseconds     first step   later steps")
    for who, rows in figures.items():
        first, later = (min(column) * 1e3 for column in zip(*rows))
        print(f"{who:<28}{first:>10.2f}{later:>14.3f}")
    print("\nmicroseconds per call          calls     stock      ours")
    for name in sorted(by_operator["stock"]):
        a, b = by_operator["stock"][name], by_operator["ours"].get(name, [])
        if b:
            left_us, right_us = (statistics.median(v) * 1e6 for v in (a, b))
            calls = len(a) // (options.steps * options.rounds)
            print(f"{name:<30}{calls:>6}{left_us:>10.1f}{right_us:>10.1f}")
    for name, why in left.items():
        print(f"left to stock: {name}: {why.splitlines()[0]}")


if __name__ == "__main__":
    sys.exit(main())
