"""Plans every example graph on meshes of two to five dims, and under memory limits.
The tables have the gap, the time, and the memory of this machine that planning takes.

  python3 bench/plan/plan_in_time.py build/release/tools/shardprop [--only WORD]
      [--gaps] [--dims] [--memory] [--time-limit 5] [--threads 1]

The script prints Markdown tables, row by row. `--gaps` plans on 2,4, and Llama's
training step on 8,8, with and without overlap and fused kernels. `--memory` first finds
the lowest limit under which the planner finds a plan, by bisection, and then plans at
1.05 to 2 times this limit.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESHES = ("2,2,2", "2,2,2,2", "2,2,2,2,2")
WAYS = {"both": (), "neither": ("--overlap", "none", "--fusion", "none")}
LLAMA = "llama3_8b_train"
TIMES_LEAST = (1.05, 1.1, 1.25, 1.5, 2.0)


def explain(binary, graph, mesh, *more):
    """The plan as JSON, or None; wall seconds; MiB."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        child = subprocess.Popen(
            [binary, "explain", graph, "--mesh", mesh, "--gap", "0", "--format", "json",
             *map(str, more)],
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - began
        out.seek(0)
        text = out.read()
    plan = json.loads(text) if child.returncode in (0, 1) and text else None
    return plan, took, usage.ru_maxrss / 1024


def verdict(plan):
    if plan is None:
        return "error", "–", "–"
    if plan["objective_us"] is None:
        return plan["status"], "–", "–"
    gap = f"{100 * plan['gap']:.2f}"
    if "space" in plan:
        gap += f" (of at most {plan['space']['most_runs']} runs)"
    return plan["status"], f"{plan['objective_us']:.1f}", gap


def gaps_table(options, graphs):
    print("| graph | mesh | optimizer | overlap, fusion | status | cost, us | gap, % | s | MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = [(graph, "2,4", "none") for graph in graphs]
    cases += [
        (graph, "8,8", optimizer)
        for graph in graphs
        if name_of(graph) == LLAMA
        for optimizer in ("none", "adamw")
    ]
    for graph, mesh, optimizer in cases:
        for way, how in WAYS.items():
            limits = ("--time-limit", options.time_limit, "--threads", options.threads)
            plan, took, mib = explain(
                options.binary, graph, mesh, "--optimizer", optimizer, *limits, *how
            )
            row = [name_of(graph), mesh, optimizer, way, *verdict(plan)]
            row += [f"{took:.1f}", f"{mib:.0f}"]
            print("| " + " | ".join(row) + " |", flush=True)


def dims_table(options, graphs):
    print("| graph | mesh | status | cost, us | gap, % | s | MiB |")
    print("|---|---|---|---|---|---|---|")
    for graph in graphs:
        for mesh in MESHES:
            plan, took, mib = explain(
                options.binary, graph, mesh, "--time-limit", options.time_limit
            )
            row = [name_of(graph), mesh, *verdict(plan), f"{took:.1f}", f"{mib:.0f}"]
            print("| " + " | ".join(row) + " |", flush=True)


def least_peak(options, graph):
    """The smallest limit, to within 2 %, under which a plan is found."""
    limit = ("--time-limit", options.time_limit)
    plan, _, _ = explain(options.binary, graph, "2,4", *limit, "--memory", "none")
    fits = plan["memory"]["peak_bytes_per_rank"]
    fails = 0
    while fits - fails > fits // 50:
        middle = (fits + fails) // 2
        plan, _, _ = explain(options.binary, graph, "2,4", *limit, "--memory", middle)
        if plan["objective_us"] is None:
            fails = middle
        else:
            fits = min(middle, plan["memory"]["peak_bytes_per_rank"])
    return fits


def memory_table(options, graphs):
    print("| graph, mesh 2,4 | least peak found | times | status | gap, % | s | MiB |")
    print("|---|---|---|---|---|---|---|")
    for graph in graphs:
        least = least_peak(options, graph)
        for times in TIMES_LEAST:
            plan, took, mib = explain(
                options.binary,
                graph,
                "2,4",
                "--time-limit",
                options.time_limit,
                "--memory",
                int(least * times),
            )
            status, _, gap = verdict(plan)
            row = [name_of(graph), str(least), f"{times}", status, gap]
            row += [f"{took:.1f}", f"{mib:.0f}"]
            print("| " + " | ".join(row) + " |", flush=True)


def name_of(graph):
    return str(graph.relative_to(ROOT / "examples/graphs")).removesuffix(".json.gz")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--gaps", action="store_true")
    parser.add_argument("--dims", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--time-limit", type=float, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of --gaps")
    options = parser.parse_args()
    folder = ROOT / "examples/graphs"
    graphs = [
        g
        for g in [*sorted(folder.glob("tiny/*.json.gz")), *sorted(folder.glob("*.json.gz"))]
        if options.only in str(g)
    ]
    tables = {
        gaps_table: options.gaps,
        dims_table: options.dims,
        memory_table: options.memory,
    }
    for table, wanted in tables.items():
        if wanted or not any(tables.values()):
            table(options, graphs)


if __name__ == "__main__":
    sys.exit(main())
