#!/usr/bin/env python3
"""Collectives of ours on threads and MPI, and of torch's gloo, in turns.

    python bench/collective/compare.py build/release/bench/collective/bench_collective

Every engine is started once and asked for one measurement after another, so that all
share the load of the machine. The table has medians over the rounds. The gloo column
needs torch and the MPI column needs mpiexec; a column without its program is left out.

If the machine is quiet only for a while, the table can be measured in slices. With
--rows FILE, rows that FILE has are not measured again, and new rows are added to it.
--seconds ends a slice before the next row would exceed it. The table is printed when
all rows exist; exit status 3 reports missing rows.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all",
               "broadcast", "permute"]

GLOO = r"""
import os, sys, time
import torch, torch.distributed as dist

rank, size, port = (int(a) for a in sys.argv[1:])
torch.set_num_threads(1)
dist.init_process_group(
    "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
groups = {n: dist.new_group(list(range(n))) for n in range(1, size + 1)}

def run(name, n, nbytes, calls):
    group = groups[n]
    whole = torch.zeros(nbytes // 4)
    if name in ("all_gather", "reduce_scatter"):
        part = torch.zeros(nbytes // n // 4)
    else:
        other = torch.zeros(nbytes // 4)
    def call():
        if name == "all_gather":
            dist.all_gather_into_tensor(whole, part, group=group)
        elif name == "reduce_scatter":
            dist.reduce_scatter_tensor(part, whole, group=group)
        elif name == "all_reduce":
            dist.all_reduce(whole, group=group)
        elif name == "all_to_all":
            dist.all_to_all_single(other, whole, group=group)
        elif name == "broadcast":
            dist.broadcast(whole, 0, group=group)
        elif name == "permute":
            works = [dist.isend(whole, (rank + 1) % n, group=group),
                     dist.irecv(other, (rank - 1) % n, group=group)]
            for work in works:
                work.wait()
    call()
    dist.barrier(group=group)
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    dist.barrier(group=group)
    return (time.perf_counter() - begin) / calls

while True:
    box = [sys.stdin.readline() if rank == 0 else None]
    dist.broadcast_object_list(box, 0)
    words = box[0].split()
    if not words:
        break
    name, n, nbytes, calls = words[0], *(int(w) for w in words[1:])
    took = run(name, n, nbytes, calls) if rank < n else 0.0
    if rank == 0:
        print(took, flush=True)
"""


class Engine:
    """A process that answers each command line with seconds per call."""

    def __init__(self, name, commands, environment=None):
        env = dict(os.environ, **(environment or {}))
        self.name = name
        self.others = [
            subprocess.Popen(c, env=env, stdin=subprocess.DEVNULL)
            for c in commands[1:]]
        self.first = subprocess.Popen(
            commands[0], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, collective, ranks, nbytes, calls):
        self.first.stdin.write(f"{collective} {ranks} {nbytes} {calls}\n")
        self.first.stdin.flush()
        return float(self.first.stdout.readline())

    def close(self):
        self.first.stdin.close()
        for process in [self.first, *self.others]:
            process.wait()


def engines(bench, most_ranks):
    out = [Engine("threads", [[bench, "threads"]])]
    mpiexec = shutil.which("mpiexec")
    if mpiexec:
        settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "OMPI_MCA_rmaps_base_oversubscribe": "1",
                    "OMPI_MCA_mpi_yield_when_idle": "1"}
        out.append(Engine(
            "MPI", [[mpiexec, "-n", str(most_ranks), bench, "mpi"]], settings))
    python = os.environ.get("SHARDPROP_PYTHON", sys.executable)
    has_torch = subprocess.run([python, "-c", "import torch.distributed"],
                               stderr=subprocess.DEVNULL).returncode == 0
    if has_torch:
        port = 20000 + os.getpid() % 20000
        out.append(Engine("gloo", [
            [python, "-c", GLOO, str(r), str(most_ranks), str(port)]
            for r in range(most_ranks)],
            {"GLOO_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}))
    return out


def calls_for(nbytes):
    return max(1, min(200, (64 << 20) // nbytes))


def shown(nbytes):
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


def time_text(seconds):
    micros = seconds * 1e6
    return f"{micros:.0f}" if micros < 1000 else f"{micros / 1000:.2f} ms"


def measure(all_engines, collective, ranks, nbytes, rounds):
    """Median seconds of each engine, and of a copy on every rank."""
    took = {e.name: [] for e in all_engines}
    took["copy"] = []
    calls = calls_for(nbytes)
    for _ in range(rounds):
        for engine in all_engines:
            took[engine.name].append(
                engine.ask(collective, ranks, nbytes, calls))
        took["copy"].append(all_engines[0].ask("copy", ranks, nbytes, calls))
    return {name: statistics.median(times) for name, times in took.items()}


def print_table(keys, rows):
    names = [name for name in rows[keys[0]] if name != "copy"]
    others = [name for name in names if name != "threads"]
    print("| collective | ranks | bytes | " + " | ".join(names) + " | "
          + " | ".join(f"{name} / threads" for name in others)
          + " | copy / threads |")
    print("|---" * (4 + len(names) + len(others)) + "|")
    for key in keys:
        collective, ranks, log2 = key
        row = rows[key]
        ratios = ["%.1f" % (row[name] / row["threads"]) for name in others]
        # Every rank of an all-gather writes the full tensor.
        copy = ("%.0f %%" % (100 * row["copy"] / row["threads"])
                if collective == "all_gather" else "")
        print(f"| {collective} | {ranks} | {shown(1 << log2)} | "
              + " | ".join([time_text(row[name]) for name in names] + ratios)
              + f" | {copy} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--sizes", type=int, nargs="+", metavar="LOG2",
                        default=[12, 16, 20, 24, 26, 28])
    parser.add_argument("--collectives", nargs="+", default=COLLECTIVES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", metavar="FILE",
                        help="rows measured so far, one JSON object a line")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    begin = time.monotonic()

    keys = [(collective, ranks, log2) for ranks in arguments.ranks
            for collective in arguments.collectives
            for log2 in arguments.sizes]
    rows = {}
    if arguments.rows and os.path.exists(arguments.rows):
        with open(arguments.rows, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                rows[tuple(row["key"])] = row["seconds"]
    missing = [key for key in keys if key not in rows]
    all_engines = (engines(arguments.bench, max(arguments.ranks))
                   if missing else [])
    for key in missing:
        collective, ranks, log2 = key
        row_begin = time.monotonic()
        rows[key] = measure(all_engines, collective, ranks, 1 << log2,
                            arguments.rounds)
        if arguments.rows:
            with open(arguments.rows, "a", encoding="utf-8") as file:
                json.dump({"key": key, "seconds": rows[key]}, file)
                file.write("\n")
        # The next row has up to 16 times as many bytes.
        now = time.monotonic()
        if now - begin + 4 * (now - row_begin) > arguments.seconds:
            break
    for engine in all_engines:
        engine.close()
    left = [key for key in keys if key not in rows]
    if left:
        print(f"{len(left)} of {len(keys)} rows are missing", file=sys.stderr)
        return 3
    print_table(keys, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
