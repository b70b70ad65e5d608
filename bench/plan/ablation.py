"""Compare plans with one search procedure switched off to plans with everything.

    python3 bench/plan/ablation.py build/release/tools/shardprop --work 3e8 \\
        >bench/results/ablation.md

Each row is one procedure. The columns compare the cost, the gap in points, and the
work over all graphs and meshes. Work counts table entries and does not depend on
the machine.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys

# A procedure that changes less than this everywhere does not pay.
COST, GAP, WORK = 0.001, 0.001, 0.02


def procedures(binary):
    """The names that --without knows: an unknown one is refused with the list."""
    graph = "examples/graphs/tiny/mlp_dynamic.json.gz"
    done = subprocess.run(
        [binary, "explain", graph, "--mesh", "2", "--without", "?"],
        capture_output=True, text=True)
    listed = re.search(r"expected one of (.*)", done.stderr)
    return re.findall(r"[a-z-]+", listed.group(1))


def plan(binary, graph, mesh, options, work):
    done = subprocess.run(
        [binary, "explain", graph, "--mesh", mesh, "--work-limit", str(work),
         "--format", "json", *options],
        capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return None
    found = json.loads(done.stdout)
    if found.get("objective_us") is None:
        return None
    return {"cost": found["objective_us"], "bound": found["lower_bound_us"],
            "work": sum(p["work"] for p in found["procedures"])}


def main():
    read = argparse.ArgumentParser()
    read.add_argument("binary")
    read.add_argument("--work", type=float, default=3e8)
    read.add_argument("--graphs", nargs="*", default=sorted(
        str(path) for path in pathlib.Path("examples/graphs/tiny").glob("*.gz")))
    read.add_argument("--options", type=str.split, default=[])
    read.add_argument("--names", nargs="*")
    read.add_argument("--meshes", nargs="*", default=["8", "dp=2,tp=4"])
    args = read.parse_args()
    names = args.names or procedures(args.binary)
    work = int(args.work)
    cases = [(graph, mesh) for graph in args.graphs for mesh in args.meshes]
    full = {case: plan(args.binary, *case, args.options, work) for case in cases}
    cases = [case for case in cases if full[case]]
    print(f"{len(cases)} plans with everything", file=sys.stderr)
    print("| without | costs more, most | gap, most | work, ratio "
          "| least ratio | most | pays |")
    print("|---|--:|--:|--:|--:|--:|---|")
    for name in names:
        costs, gaps, ratios = [0.0], [0.0], []
        for case in cases:
            without = plan(args.binary, *case,
                           [*args.options, "--without", name], work)
            if without is None:
                costs.append(math.inf)
                continue
            base = full[case]
            costs.append(without["cost"] / base["cost"] - 1)
            gaps.append((without["cost"] - without["bound"]) / without["cost"]
                        - (base["cost"] - base["bound"]) / base["cost"])
            if base["work"]:
                ratios.append(max(without["work"], 1) / base["work"])
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        pays = (max(costs) >= COST or max(gaps) >= GAP
                or max(ratios) >= 1 + WORK)
        print(f"| {name} | {100 * max(costs):.2f} % | {100 * max(gaps):.2f} "
              f"| {mean:.3f} "
              f"| {min(ratios):.2f} | {max(ratios):.2f} "
              f"| {'yes' if pays else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
