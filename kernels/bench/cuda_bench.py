#!/usr/bin/env python3
"""The CUDA kernels against torch's ops and a plain copy kernel, interleaved.

    cuda_bench.py --build build [--rounds 20] [--list NAME]

Times are GPU times, measured by events around as many calls as take some milliseconds.
Each round times every contender once, in turn, and the median counts. Small lists are
also replayed as a graph, which excludes the launches. The plain copy is strided_copy on
two contiguous buffers of the same payload. The script exits with 77 if there is no
device.
"""

import argparse
import os
import statistics
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "python"))
import cpu_bench  # noqa: E402
from lists import LISTS, even_rows  # noqa: E402
from shardprop_kernels import Kernels  # noqa: E402


def seconds(run, repeats):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / repeats


def measure(runs, rounds):
    times = {name: [] for name in runs}
    repeats = {}
    for name, run in runs.items():
        run()
        torch.cuda.synchronize()
        repeats[name] = max(1, min(100, int(2e-3 / max(seconds(run, 3), 1e-6))))
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run, repeats[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--list", choices=LISTS)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 77
    torch.set_default_device("cuda")
    lib = Kernels(os.path.join(arguments.build, "libshardprop_kernels_c.so"))
    name = torch.cuda.get_device_name()
    print(f"{name}; torch {torch.__version__}, CUDA {torch.version.cuda}")
    print()
    print(
        "| list | call | MiB | ours us | torch us | torch / ours | ours GB/s "
        "| plain copy GB/s | ours / copy | ours as graph us |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for list_name, shapes_of in LISTS.items():
        if arguments.list not in (None, list_name):
            continue
        for case, function, src, dst, n, _ in cpu_bench.CASES:
            shapes = shapes_of()
            if n == cpu_bench.WORLD:
                shapes = even_rows(shapes, n)
            payload, ours, torchs, results, keep = function(
                lib, shapes, src, dst, n
            )
            half = payload // 2 // 256 * 256
            a, b = (torch.zeros(half, dtype=torch.uint8) for _ in range(2))
            runs = {
                "ours": ours,
                "torch": torchs,
                "copy": lib.bind_strided_copy(a, b),
            }
            for run in runs.values():
                run()
            for got, want in zip(*map(list, results())):
                assert torch.equal(got.view(-1), want.view(-1)), case

            times = measure(runs, arguments.rounds)
            # Bound anew: a call keeps the stream it was bound on.
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                _, on_stream, _, _, keep_too = function(lib, shapes, src, dst, n)
                graph = torch.cuda.CUDAGraph()
                torch.cuda.synchronize()
                with torch.cuda.graph(graph, stream=stream):
                    on_stream()
            replay = measure({"graph": graph.replay}, arguments.rounds)["graph"]
            copy = 2 * half / times["copy"] / 1e9
            rate = payload / times["ours"] / 1e9
            print(
                f"| {list_name} | {case} | {payload / 2**20:.1f} "
                f"| {times['ours'] * 1e6:.1f} | {times['torch'] * 1e6:.1f} "
                f"| {times['torch'] / times['ours']:.2f} | {rate:.0f} "
                f"| {copy:.0f} | {rate / copy:.2f} | {replay * 1e6:.1f} |",
                flush=True,
            )
            del payload, ours, torchs, results, keep, keep_too, runs, a, b, graph
    return 0


if __name__ == "__main__":
    sys.exit(main())
