#!/usr/bin/env python3
"""Compares the plans of two builds of the command line.

    scripts/same_plans.py OLD NEW [--meshes 2,4 8 dp=2,tp=2,pp=2] [--graphs GLOB]
                          [--recipe fsdp,megatron]

OLD and NEW are two `shardprop` binaries. Every graph under examples/graphs is
planned on every mesh, with and without a memory limit, under the same work limit
and seed. The plan files must be equal to the byte, apart from `solve_seconds`
and `procedures`, the records of the search.
Use it before and after a change that must not change plans. Prints each
difference; the exit status is 1 if there is one.
"""

import argparse
import concurrent.futures
import functools
import itertools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRAPHS = ROOT / "examples" / "graphs"


@functools.cache
def exactly(binary):
    """Returns the options of a search for a proof. Older builds have no other one."""
    done = subprocess.run([binary, "explain", "--help"], capture_output=True, text=True)
    return ["--gap", "0"] if "--gap" in done.stdout else []


def plan_of(binary, graph, mesh, memory, options):
    """Returns the plan file without its time, or the error text."""
    command = [binary, "explain", str(graph), "--mesh", mesh, "--seed", "1",
               "--work-limit", str(options.work), *exactly(binary), "--format", "json"]
    if options.recipe:
        command += ["--recipe", options.recipe]
    if memory:
        command += ["--memory", memory]
    done = subprocess.run(command, capture_output=True, text=True)
    text = re.sub(r'("solve_seconds": *)[0-9.e+-]+', r'\g<1>0', done.stdout)
    text = re.sub(r'"procedures": *\[[^]]*\],?\s*', "", text)
    return text or done.stderr


def needed_bytes(plan):
    """Returns the peak of a plan in bytes, or None for an answer without a plan."""
    try:
        return json.loads(plan)["memory"]["peak_bytes_per_rank"]
    except (ValueError, KeyError, TypeError):
        return None


def compare(case, options):
    """Returns a line for one graph on one mesh: equal, or what differs."""
    graph, mesh = case
    name = f"{graph.relative_to(GRAPHS)} on {mesh}"
    plans = [plan_of(b, graph, mesh, None, options) for b in options.binaries]
    if plans[0] != plans[1]:
        return f"differs: {name}"
    peak = needed_bytes(plans[0])
    if peak is None:
        return f"equal, no plan: {name}"
    # Tight enough to change the plan.
    limit = str(peak * 9 // 10)
    plans = [plan_of(b, graph, mesh, limit, options) for b in options.binaries]
    if plans[0] != plans[1]:
        return f"differs at {limit} bytes: {name}"
    return f"equal: {name}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs=2, metavar="BINARY")
    parser.add_argument("--meshes", nargs="+", default=["2,4", "8", "2,2,2"])
    parser.add_argument("--graphs", default="**/*.json.gz")
    parser.add_argument("--recipe", help="plan all graphs with this recipe")
    parser.add_argument("--work", type=int, default=20_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    cases = list(itertools.product(sorted(GRAPHS.glob(options.graphs)), options.meshes))
    if not cases:
        sys.exit(f"no graph matches {options.graphs}")
    differ = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda case: compare(case, options), cases):
            differ += line.startswith("differs")
            print(line, flush=True)
    print(f"{len(cases)} cases, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
