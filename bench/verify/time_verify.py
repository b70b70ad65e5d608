"""Measures time and memory of sp.torch.verify() on a tiny Llama, and of one device.

  PYTHONPATH=build/release/python/package python3 bench/verify/time_verify.py [--repeat 3]

The model has 4 layers, width 128 and 1,024 words; a batch has 8 sequences of 32 tokens.
Attention and MLP are sharded over `tp` by parallelize_module(), and all parameters over
`dp` by fully_shard(). Each run is a process of its own. The table has the best of the
repeated runs. Memory is the growth of the largest resident memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import shardprop as sp

WIDTH, HIDDEN, HEADS, LAYERS, WORDS = 128, 384, 4, 4, 1024
SEQUENCES, TOKENS = 8, 32
MESH = "dp=4,tp=2"


def rotated(x):
    """Returns queries or keys with rotary positions."""
    half = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
    a, b = x.chunk(2, -1)
    return torch.cat(
        [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1
    )


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        for name in ("query", "key", "value", "out"):
            self.add_module(name, nn.Linear(WIDTH, WIDTH, bias=False))
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        y = self.attention_norm(x)
        q, k, v = (
            layer(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids):
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def parallelize(model, mesh):
    for layer in model.layers:
        plan = {
            **dict.fromkeys(("query", "key", "value", "gate", "up"), ColwiseParallel()),
            **dict.fromkeys(("out", "down"), RowwiseParallel()),
        }
        parallelize_module(layer, mesh["tp"], plan)
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])


def step_of(optimizes):
    def step(model, batch):
        ids, labels = batch
        size, rank = dist.get_world_size(), dist.get_rank()
        if size > 1:
            ids, labels = (tensor.chunk(4)[rank // 2] for tensor in batch)
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        loss.backward()
        if optimizes:
            torch.optim.AdamW(model.parameters(), 1e-3).step()
        return loss

    return step


def batch():
    return tuple(torch.randint(0, WORDS, (SEQUENCES, TOKENS)) for _ in range(2))


def one_device(optimizes):
    model = Llama()
    loss = F.cross_entropy(model(batch()[0]).flatten(0, 1), batch()[1].flatten())
    loss.backward()
    if optimizes:
        torch.optim.AdamW(model.parameters(), 1e-3).step()


def verified(optimizes):
    report = sp.torch.verify(Llama, parallelize, step_of(optimizes), batch, MESH)
    assert report.ok, f"{report}"


def measured(name, optimizes):
    """Runs one program and prints CPU seconds, wall seconds and MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    (verified if name == "verify" else one_device)(optimizes)
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps([cpu, wall, (after.ru_maxrss - before.ru_maxrss) / 1024]))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--one", nargs=2, help="run one program in this process")
    options = options.parse_args()
    torch.set_num_threads(1)
    if options.one:
        return measured(options.one[0], options.one[1] == "optimizes")
    print("| run | ranks | CPU, s | wall, s | MiB |\n|---|---|---|---|---|")
    for what in ("backward", "optimizes"):
        for name, ranks in (("one", 1), ("verify", 8)):
            runs = [
                json.loads(subprocess.run(
                    [sys.executable, __file__, "--one", name, what],
                    check=True, capture_output=True, text=True,
                ).stdout.splitlines()[-1])
                for _ in range(options.repeat)
            ]
            best = [min(run[i] for run in runs) for i in range(3)]
            print(f"| {name}, {what} | {ranks} | " + " | ".join(
                f"{value:.2f}" for value in best
            ) + " |", flush=True)


if __name__ == "__main__":
    main()
