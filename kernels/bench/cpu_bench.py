#!/usr/bin/env python3
"""The CPU kernels against torch's ops and the best plain copy, interleaved.

    cpu_bench.py --build build [--threads 2] [--rounds 7] [--list NAME]
        [--case REGEX]

Every round times each contender once, in turn, so that a slow moment of the machine
affects all of them. Dirty cache lines of the previous contender are evicted first,
unless the list is meant to fit in the caches. A run whose threads waited for a core is
repeated.

A rate is the payload (bytes read of the inputs and written to the output) over time, as
the median over the rounds. A ratio is the median of the ratios of each round, which a
slow round does not change. The best copy is the one with the highest ratio to ours.
"""

import argparse
import ctypes
import glob
import os
import re
import statistics
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "python"))
from lists import LISTS, even_rows  # noqa: E402
from shardprop_kernels import Kernels  # noqa: E402

WORLD = 8
SWEPT = 64 << 20  # bytes, more than the last-level cache
TRIES = 5
F32, BF16 = torch.float32, torch.bfloat16


def nbytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def make(shapes, dtype):
    # The tensors are written once, so that every page exists before the clock starts.
    return [torch.zeros(s, dtype=dtype).add_(1) for s in shapes]


def shard_dims(shapes):
    return [1 if len(s) > 1 else 0 for s in shapes]


def chunk_cat(lib, shapes, src, dst, n):
    tensors = make(shapes, src)
    want = sum(-(-s[0] // n) * (t.numel() // s[0]) for s, t in zip(shapes, tensors))
    out = torch.zeros((n, want), dtype=dst)
    other = torch.zeros((n, want), dtype=dst)
    return (
        nbytes(tensors) + nbytes([out]),
        lib.bind_chunk_cat(tensors, 0, n, out),
        lambda: torch._chunk_cat(tensors, 0, n, out=other),
        lambda: (out, other),
        tensors,
    )


def sharded_chunk_cat(lib, shapes, src, dst, n):
    tensors = make(shapes, src)
    dims = shard_dims(shapes)
    out = torch.zeros((n, sum(t.numel() for t in tensors) // n), dtype=dst)
    other = torch.zeros_like(out)

    def fsdp():
        stacked = [
            torch.cat(torch.chunk(t, n, d), 0) if d else t
            for t, d in zip(tensors, dims)
        ]
        torch._chunk_cat(stacked, 0, n, out=other)

    return (
        nbytes(tensors) + nbytes([out]),
        lib.bind_chunk_cat(tensors, 0, n, out, shard_dims=dims),
        fsdp,
        lambda: (out, other),
        tensors,
    )


def split(lib, shapes, src, dst, n):
    outs = [t.view(n, -1) for t in make(shapes, dst)]
    sizes = [t.shape[1] for t in outs]
    source = torch.zeros((n, sum(sizes)), dtype=src).add_(1)
    others = [torch.zeros_like(t) for t in outs]

    def ours_then_cast():
        torch.split_with_sizes_copy(source, sizes, 1, out=others)

    def cast_in_two():
        parts = torch.split_with_sizes(source, sizes, 1)
        torch._foreach_copy_(others, parts)

    return (
        nbytes(outs) + nbytes([source]),
        lib.bind_split_with_sizes_copy(source, sizes, 1, outs),
        ours_then_cast if src == dst else cast_in_two,
        lambda: (outs, others),
        source,
    )


def sharded_split(lib, shapes, src, dst, n):
    outs = make(shapes, dst)
    dims = shard_dims(shapes)
    sizes = [t.numel() // n for t in outs]
    source = torch.zeros((n, sum(sizes)), dtype=src).add_(1)
    others = [torch.zeros_like(t) for t in outs]
    # FSDP's second pass reads the output of split_with_sizes_copy.
    middle = [torch.zeros((n, size), dtype=src) for size in sizes]

    def fsdp():
        torch.split_with_sizes_copy(source, sizes, 1, out=middle)
        for other, mid, d in zip(others, middle, dims):
            if d == 0:
                other.copy_(mid.view(other.shape))
                continue
            chunk = list(other.shape)
            chunk[d] //= n
            torch.cat([mid[k].view(chunk) for k in range(n)], d, out=other)

    return (
        nbytes(outs) + nbytes([source]),
        lib.bind_split_with_sizes_copy(source, sizes, 1, outs, shard_dims=dims),
        fsdp,
        lambda: (outs, others),
        source,
    )


# Columns: name, function, source, destination, chunks, whether torch needs a second
# pass. torch's default device selects the device; cuda_bench.py runs these cases on the
# GPU.
CASES = [
    ("chunk_cat bf16", chunk_cat, BF16, BF16, WORLD, False),
    ("chunk_cat f32", chunk_cat, F32, F32, WORLD, False),
    ("chunk_cat f32, padded", chunk_cat, F32, F32, 7, True),
    ("chunk_cat f32 to bf16", chunk_cat, F32, BF16, WORLD, True),
    ("chunk_cat bf16 to f32", chunk_cat, BF16, F32, WORLD, True),
    ("chunk_cat bf16, shard dim 1", sharded_chunk_cat, BF16, BF16, WORLD, True),
    ("split bf16", split, BF16, BF16, WORLD, False),
    ("split f32 to bf16", split, F32, BF16, WORLD, False),
    ("split bf16, shard dim 1", sharded_split, BF16, BF16, WORLD, True),
]


class BestCopy:
    """Several ways to copy; the fastest of them is the yardstick."""

    def __init__(self, path, threads):
        self.lib = ctypes.CDLL(path)
        self.lib.best_copy_pool.restype = ctypes.c_void_p
        self.pools = {
            n: ctypes.c_void_p(self.lib.best_copy_pool(n)) for n in {1, threads}
        }

    def contenders(self, payload):
        count = max(payload // 2 // 65536 * 65536, 65536)
        src = torch.zeros(count + 4096, dtype=torch.uint8).add_(1)
        dst = torch.zeros(count + 4096, dtype=torch.uint8).add_(1)
        pages = [ctypes.c_void_p(-(-t.data_ptr() // 4096) * 4096) for t in (dst, src)]
        names = ("memcpy", "stream", "rep movsb")

        def bind(way, pool):
            return lambda: self.lib.best_copy(
                way, *pages, ctypes.c_int64(count), pool
            )

        runs = {
            f"{name} x{threads}": bind(way, pool)
            for way, name in enumerate(names)
            for threads, pool in self.pools.items()
        }
        return 2 * count, runs, (src, dst)


def queued():
    """Seconds that this process's threads have waited for a core; 0 without procfs."""
    waited = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        with open(path) as stat:
            waited += int(stat.read().split()[1])
    return waited / 1e9


def measure(runs, rounds, repeats):
    """The seconds of every round, by contender."""
    seconds = {name: [] for name in runs}
    sweep = b"\1" * SWEPT if repeats == 1 else b""
    for _ in range(rounds):
        for name, run in runs.items():
            for _ in range(TRIES):
                sweep.find(b"\0")
                before = queued()
                start = time.perf_counter()
                for _ in range(repeats):
                    run()
                took = time.perf_counter() - start
                if queued() - before < 0.05 * took + 20e-6:
                    break
            seconds[name].append(took / repeats)
    return seconds


def lead(ours, other):
    """How many times faster ours is than the other, as a median over rounds."""
    return statistics.median(b / a for a, b in zip(ours, other))


def cpu_model():
    """The model of the processor; virtual machines often report little."""
    fields = {}
    with open("/proc/cpuinfo") as info:
        for line in info:
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    return (
        f"{fields.get('model name', 'unknown')}, family "
        f"{fields.get('cpu family')}, model {fields.get('model')}, "
        f"{os.cpu_count()} cores"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--list", choices=LISTS)
    parser.add_argument("--case", default="", help="only cases that match this")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    lib = Kernels(
        os.path.join(arguments.build, "libshardprop_kernels_c.so"),
        arguments.threads,
    )
    copies = BestCopy(
        os.path.join(arguments.build, "bench", "libshardprop_best_copy.so"),
        arguments.threads,
    )
    print(f"{cpu_model()}; torch {torch.__version__}, {arguments.threads} threads")
    print()
    print(
        "| list | call | MiB | ours GB/s | torch GB/s | ours / torch "
        "| memcpy GB/s | best copy GB/s | ours / best copy |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for list_name, shapes_of in LISTS.items():
        if arguments.list not in (None, list_name):
            continue
        for case, function, src, dst, n, _ in CASES:
            if not re.search(arguments.case, case):
                continue
            shapes = shapes_of() if n != WORLD else even_rows(shapes_of(), n)
            payload, ours, torchs, results, keep = function(
                lib, shapes, src, dst, n
            )
            copied, runs, buffers = copies.contenders(payload)
            runs = {"ours": ours, "torch": torchs, **runs}
            for run in runs.values():
                run()
            for got, want in zip(*map(list, results())):
                assert torch.equal(got.view(-1), want.view(-1)), case
            repeats = max(1, SWEPT // payload)
            seconds = measure(runs, arguments.rounds, repeats)
            rate = {
                name: (payload if name in ("ours", "torch") else copied)
                / statistics.median(times)
                / 1e9
                for name, times in seconds.items()
            }
            memcpy = max(v for k, v in rate.items() if k.startswith("memcpy"))
            leads = {
                name: lead(seconds["ours"], times)
                for name, times in seconds.items()
            }
            copy = min((k for k in leads if k not in ("ours", "torch")), key=leads.get)
            share = leads[copy] * payload / copied
            print(
                f"| {list_name} | {case} | {payload / 2**20:.1f} "
                f"| {rate['ours']:.1f} | {rate['torch']:.1f} "
                f"| {leads['torch']:.2f} | {memcpy:.1f} "
                f"| {rate[copy]:.1f} ({copy}) | {share:.2f} |",
                flush=True,
            )
            del payload, ours, torchs, results, keep, runs, buffers


if __name__ == "__main__":
    main()
