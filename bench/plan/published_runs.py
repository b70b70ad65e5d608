#!/usr/bin/env python3
"""Compares published steps of whole models with the steps that shardprop plans.

  python3 bench/plan/published_runs.py build/release/tools/shardprop --graphs DIR

Each run of published_runs.tsv is planned as a user would plan it: four layers are
exported and stand for all (`--blocks`), and micro-batches, recomputation and the memory
limit are options. No rate is fitted and no time is added by hand. Runs without a recipe get the plan
that costs least on their mesh. It needs torch and transformers to export the graphs that
are not in DIR yet. The table is part of bench/results/published_steps.md.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXPORTED_LAYERS = 4
# GiB that are left for the plan on 80 GB cards. The recipes of 2022 are not limited:
# their runs are known to fit.
LIMIT = "76GiB"


def exported(run, folder):
    """The path of the graph of a run, with four layers or as many as the run has."""
    layers = EXPORTED_LAYERS if int(run["layers"]) > 8 else int(run["layers"])
    path = folder / f"{run['model']}_{run['batch']}x{run['sequence']}_l{layers}.json.gz"
    if not path.exists():
        sys.path[:0] = [str(ROOT / "python/shardprop/torch"), str(ROOT / "tools"), str(HERE)]
        from exporting import metadata, program, write
        from published_models import MODELS

        made = program.export_program(
            lambda training: MODELS[run["model"]](int(run["batch"]), int(run["sequence"]), layers),
            training=True, device="cuda", composite=False, loss_index=0)
        metadata.trim(made)
        partial = folder / f"partial-{path.name}"
        write.write(made, str(partial), "cuda")
        partial.rename(path)
    return path, layers


def planned_seconds(binary, run, folder):
    """Returns the seconds of a step, and the bytes of its peak."""
    graph, layers = exported(run, folder)
    command = [binary, "explain", graph, "--mesh", run["mesh"], "--topology", run["topology"],
               "--accumulate", run["accumulate"], "--recompute", run["recompute"],
               "--execution", run["execution"], "--format", "json"]
    command += ["--memory", "none", "--recipe", run["recipe"]] if run["recipe"] else [
        "--memory", LIMIT]
    if layers < int(run["layers"]):
        command += ["--blocks", run["layers"]]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"{run}: {done.stderr}")
    plan = json.loads(done.stdout)
    if "objective_us" not in plan:
        raise SystemExit(f"{run}: {plan['status']}")
    return (plan["objective_us"] * int(run["accumulate"]) / 1e6,
            plan["memory"]["peak_bytes_per_rank"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--graphs", type=pathlib.Path, required=True, metavar="DIR")
    options = parser.parse_args()
    options.graphs.mkdir(parents=True, exist_ok=True)
    print("| source | model | layers | mesh | tokens x batch | micro-batches | runs again |"
          " published, s | planned, s | error | peak, GiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    errors = []
    with open(HERE / "published_runs.tsv") as file:
        for run in csv.DictReader((line for line in file if line[0] != "#"), delimiter="\t"):
            seconds, peak = planned_seconds(options.binary, run, options.graphs)
            errors.append(seconds / float(run["step s"]) - 1)
            print(f"| {run['source']} | {run['model']} | {run['layers']} | {run['mesh']} |"
                  f" {run['sequence']} x {run['batch']} | {run['accumulate']} |"
                  f" {run['recompute']} | {run['step s']} | {seconds:.2f} |"
                  f" {100 * errors[-1]:+.1f} % | {peak / 2**30:.1f} |", flush=True)
    median = statistics.median(abs(error) for error in errors)
    print(f"\nMedian of the errors without sign: {100 * median:.1f} %.")


if __name__ == "__main__":
    main()
