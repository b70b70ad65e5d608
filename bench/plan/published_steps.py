#!/usr/bin/env python3
"""Compares published training steps with the predictions of shardprop.

  python3 bench/plan/published_steps.py build/release/tools/shardprop --graphs DIR

The script prints the tables of bench/results/published_steps.md, which states the
assumptions. It needs torch and transformers, as scripts/export_graphs.sh does, to export
the graphs that are not in DIR yet. published_steps.tsv has the runs.

Each run is planned with its recipe on graphs of two and of four layers; the time of a
layer is half the difference. The attained shares of the devices' measured rates are fitted
on the runs of one generation of devices and tested on the runs of the other.
"""

import argparse
import csv
import gzip
import hashlib
import itertools
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHALLOW, DEEP = 2, 4
# Batch and sequence at which graphs are exported: primes that no other size contains.
MADE_AT = 100_003, 100_019
LAYERS = {
    "llama3-8b": 32, "llama3-70b": 80, "llama3-405b": 126, "llama2-13b": 40, "llama2-70b": 80,
    "mpt-125m": 12, "mpt-350m": 24, "mpt-760m": 24, "mpt-1b": 24, "mpt-3b": 32, "mpt-7b": 32,
    "mpt-13b": 40, "mpt-30b": 48, "mpt-70b": 80, "gpt-22b": 48,
}


class Device(NamedTuple):
    """The published rates of a device in TFLOP/s and GB/s."""

    preset: str
    peak: float  # of 16-bit products, on the datasheet
    products: float  # measured at best: stas00/ml-engineering, compute/accelerator
    products_8: float  # the same of 8-bit products
    attention: float  # FlashAttention-2, forward and backward, by its authors
    memory: float

    def attention_of(self, kernel):
        return TRITON_SHARE * self.attention if kernel == "triton" else self.attention


# FlashAttention-2 reaches 50 to 73 % of an A100's peak (arXiv 2307.08691) and 35 % of
# an H100's (arXiv 2407.08608).
A100_ATTENTION, H100_ATTENTION = 0.615 * 312, 0.35 * 989
# FlashAttention-2 is 1.3 to 1.5 times as fast as FlashAttention in Triton in the forward
# pass, which has two matmuls, and twice as fast in the backward pass, which has five
# (arXiv 2307.08691).
TRITON_SHARE = 7 / (2 * 1.4 + 5 * 2)
# The peak of torchtitan's H100 of 500 W is "between SXM and NVL": half way.
AT_500W = (989 + 835) / 2 / 989
DEVICES = {
    "a100": Device("dgx-a100", 312, 271.2, 542, A100_ATTENTION, 2040),
    "a100-40g": Device("dgx-a100", 312, 271.2, 542, A100_ATTENTION, 1555),
    "h100": Device("dgx-h100", 989, 794.5, 1402.6, H100_ATTENTION, 3350),
    "h100-500w": Device("dgx-h100", 989, AT_500W * 794.5, AT_500W * 1402.6,
                        AT_500W * H100_ATTENTION, 2400),
    "h200": Device("dgx-h200", 989, 794.5, 1453.4, H100_ATTENTION, 4800),
}
GENERATIONS = {"ampere": ("a100", "a100-40g"), "hopper": ("h100", "h100-500w", "h200")}


class Rates(NamedTuple):
    """The attained rates in TFLOP/s and GB/s, and the overlapped share of overlappable time."""

    products: float
    products_8: float
    attention: float
    memory: float
    overlap: float


def preset_figures(binary):
    """Returns the figures of the presets."""
    done = subprocess.run([binary, "topologies", "--format", "json"], check=True,
                          capture_output=True, text=True)
    return {preset["name"]: {key: figure["value"] for key, figure in preset["figures"].items()}
            for preset in json.loads(done.stdout)}


def preset_rates(run, figures):
    """The rates of a run as shardprop ships them, for the run's device and its kernel of
    attention."""
    device = DEVICES[run.hardware]
    preset = figures[device.preset]
    eager = run.kernels != "compiler" and preset["eager.memory_efficiency"] > 0
    passes = preset["eager.memory_efficiency" if eager else "device.memory_efficiency"]
    share = preset["device.efficiency"] * (preset["device.sustained"] or 1)
    double = preset["device.f8_tflops"] / preset["device.f16_tflops"]
    return Rates(share * device.peak, share * double * device.peak,
                 device.attention_of(run.attention), passes * device.memory,
                 preset["overlap.discount"])


def fitted_rates(run, shares):
    device = DEVICES[run.hardware]
    return Rates(shares["products"] * device.products, shares["products"] * device.products_8,
                 shares.get(run.attention, 1) * device.attention_of(run.attention),
                 shares["passes"] * device.memory, shares["overlap"])


class Run(NamedTuple):
    source: str
    model: str
    hardware: str
    gpus: int
    tensor: int  # ranks that share a layer
    sequence: int
    batch: int  # sequences of a group of `tensor` ranks, in one micro-batch
    accumulate: int
    recompute: str
    kernels: str
    attention: str
    float8: bool
    ms: float  # of a micro-batch, with its share of the optimizer's step


def read_runs():
    runs = []
    with open(HERE / "published_steps.tsv") as file:
        for row in csv.DictReader((l for l in file if l[0] != "#"), delimiter="\t"):
            numbers = {k: int(row[k])
                       for k in ("gpus", "tensor", "sequence", "batch", "accumulate")}
            tokens = numbers["batch"] * numbers["sequence"] / numbers["tensor"]
            words = {k: row[k] for k in ("source", "model", "hardware", "recompute", "kernels",
                                         "attention")}
            runs.append(Run(**numbers, **words, float8=row["float8"] == "yes",
                            ms=tokens * 1e3 / float(row["tokens/s/GPU"])))
    return runs


def exported(model, layers, folder):
    """The path of a model's graph with MADE_AT's batch and sequence."""
    path = folder / f"{model}_l{layers}.json.gz"
    if not path.exists():
        sys.path[:0] = [str(ROOT / "python/shardprop/torch"), str(ROOT / "tools"), str(HERE)]
        from exporting import metadata, program, write
        from published_models import MODELS

        made = program.export_program(
            lambda training: MODELS[model](*MADE_AT, layers),
            training=True, device="cuda", composite=False, loss_index=0)
        metadata.trim(made)
        partial = folder / f"partial-{path.name}"
        write.write(made, str(partial), "cuda")
        partial.rename(path)
    return path


def resized(text, batch, sequence):
    """The text of a graph made at MADE_AT with other sizes: each number that has
    these primes as factors gets the new size for them."""

    def size(match):
        number = int(match[0])
        if abs(number - MADE_AT[1]) == 1:  # labels are shifted by one
            return str(sequence + number - MADE_AT[1])
        for prime, wanted in zip(MADE_AT, (batch, sequence)):
            while number % prime == 0:
                number = number // prime * wanted
        return str(number)

    return re.sub(r"(?<![\w.])\d{6,18}(?![\w.])", size, text)


# This says how elementwise operators share kernels: as a compiler fuses them, or as eager
# PyTorch runs them. Without fusion, an operator that the exporter decomposed is one kernel.
FUSION = {"compiler": "compiler", "eager": "none", "modules": "none"}


def rule(run, layers):
    """The rule of recomputation of a run, on a graph of so many layers."""
    every_other = f"full:{layers // 2}"
    return {"none": "none", "full": "full", "layers": every_other, "ops": "selective",
            "core": "selective:megatron"}[run.recompute]


def plan(binary, run, layers, rates, folder):
    """Returns the plan of a run's recipe, as JSON."""
    data = run.gpus // run.tensor
    dims = [("dp", data, "fsdp"), ("tp", run.tensor, "megatron-sp")]
    dims = [d for d in dims if d[1] > 1]
    with tempfile.TemporaryDirectory() as scratch:
        graph = pathlib.Path(scratch) / "graph.json"
        with gzip.open(exported(run.model, layers, folder), "rt") as file:
            graph.write_text(resized(file.read(), run.batch * data, run.sequence))
        topology = pathlib.Path(scratch) / "topology.toml"
        topology.write_text(
            f'name = "{run.hardware}"\nbase = "{DEVICES[run.hardware].preset}"\n[device]\n'
            f"efficiency = 1\nsustained = 1\nattention_half_dim = 0\nattention_efficiency = {rates.attention / rates.products}\n"
            f"f16_tflops = {rates.products}\nf8_tflops = {rates.products_8}\n"
            f"memory_efficiency = 1\nmemory_gbps = {rates.memory}\n"
            f"[eager]\nmemory_efficiency = 1\n[overlap]\ndiscount = {rates.overlap}\n")
        done = subprocess.run(
            [binary, "explain", graph, "--mesh", ",".join(f"{n}={s}" for n, s, _ in dims),
             "--recipe", ",".join(f"{r}={n}" for n, _, r in dims), "--topology", topology,
             "--memory", "none", "--optimizer", "adamw", "--fusion", FUSION[run.kernels],
             "--recompute", rule(run, layers), "--format", "json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"{run}: {done.stderr}")
    return json.loads(done.stdout)


def local_elements(plan, shape, placements):
    parts = (dim["size"] for dim, p in zip(plan["mesh"]["dims"], placements) if p[0] == "S")
    return math.prod(shape) / math.prod(parts)


def phase_of(node):
    """Returns the phase of a node. Second runs count as a part of the backward phase."""
    return "backward" if node["phase"] == "recompute" else node["phase"]


def parts_of(plan):
    """Returns milliseconds of a plan's step by phase and kind of work."""
    parts = defaultdict(float)
    shapes = {name: value["shape"] for name, value in plan["values"].items()}
    for node in plan["nodes"]:
        for out in node["outputs"]:
            shapes[out.get("name", node["id"])] = out["shape"]
        kind = node.get("kind", "optimizer")
        if kind == "matmul":
            # A layer has three matmuls, and each operand is read by two of them.
            parts["cast"] += sum(local_elements(plan, shapes[i["from"]], i["placements"])
                                 for i in node["inputs"]) / 2
        if kind not in ("matmul", "attention", "optimizer"):
            kind = "pass"
        us = node["compute_us"]
        parts[phase_of(node), kind] += us / 1e3
        parts[phase_of(node), "fixed"] += sum(s["us"] for s in node["inside"]) / 1e3
    gathered = defaultdict(list)
    for copy in plan["copies"]:
        took = sum(step["us"] for step in copy["steps"]) / 1e3
        phase = phase_of(plan["nodes"][min(copy["made_at"], len(plan["nodes"]) - 1)])
        hideable = copy["hidden_us"] > 0
        parts[phase, "hideable" if hideable else "fixed"] += took
        if hideable and copy["steps"][0]["collective"] == "all_gather":
            gathered[copy["of"]].append(took)
    # FSDP gathers parameters in the backward pass again; a plan may keep them.
    parts["backward", "hideable"] += sum(t[0] for t in gathered.values() if len(t) == 1)
    return parts


def parts_of_run(binary, run, rates, folder):
    """Returns the parts of the model, and of all its layers alone; caches them in `folder`."""
    key = (run.model, run.hardware, run.gpus, run.tensor, run.sequence, run.batch, run.kernels,
           run.recompute, tuple(rates))
    path = folder / f"parts-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.json"
    if not path.exists():
        both = [parts_of(plan(binary, run, depth, rates, folder)) for depth in (SHALLOW, DEEP)]
        path.write_text(json.dumps([list(parts.items()) for parts in both]))
    shallow, deep = (
        defaultdict(float, {k if isinstance(k, str) else tuple(k): v for k, v in parts})
        for parts in json.loads(path.read_text()))
    whole, layers = defaultdict(float), defaultdict(float)
    for key in {*shallow, *deep}:
        layer = (deep[key] - shallow[key]) / (DEEP - SHALLOW)
        layers[key] = LAYERS[run.model] * layer
        whole[key] = shallow[key] - SHALLOW * layer + layers[key]
    return whole, layers


def step_ms(run, parts, rates, priced):
    """Returns the step of a run: the plan at the rates with which it was priced, corrected
    for facts that a plan does not have: other rates and 8-bit matmuls."""
    whole, layers = parts
    scale = {"matmul": priced.products / rates.products, "pass": priced.memory / rates.memory,
             "attention": priced.attention / rates.attention}
    saved, cast = 0.0, 0.0
    if run.float8:
        saved = 1 - rates.products / rates.products_8
        # Read for the largest number, read again and written in 8 bits.
        cast = layers["cast"] * 5 / (rates.memory * 1e6)
    total = whole["optimizer", "optimizer"] * scale["pass"] / run.accumulate + cast
    for phase in ("forward", "backward"):
        compute = sum(whole[phase, k] * scale[k] for k in ("matmul", "attention", "pass"))
        fixed, hideable = whole[phase, "fixed"], whole[phase, "hideable"]
        if phase == "forward":
            # Communication after the update overlaps with the next step's forward pass.
            fixed += whole["optimizer", "fixed"]
            hideable += whole["optimizer", "hideable"]
        compute -= saved * layers[phase, "matmul"] * scale["matmul"]
        total += compute + fixed + hideable - min(rates.overlap * hideable, compute)
    return total


def fit(runs, parts, priced):
    """The shares with the least mean error of logarithms: one after the other until
    none gets better, from several beginnings."""

    def error(shares):
        return statistics.mean(
            abs(math.log(step_ms(run, part, fitted_rates(run, shares), rates) / run.ms))
            for run, part, rates in zip(runs, parts, priced))

    def descend(shares):
        least = error(shares)
        while True:
            before = least
            for name in shares:
                for percent in range(20, 101, 1):
                    tried = {**shares, name: percent / 100}
                    found = error(tried)
                    if found < least:
                        least, shares = found, tried
            if least == before:
                return least, shares

    kernels = sorted({run.attention for run in runs} - {"plain"})
    names = ("products", "passes", "overlap", *kernels)
    ends = [descend({**dict.fromkeys(names, 0.8), "passes": passes, "overlap": overlap})
            for passes in (0.6, 0.8) for overlap in (0.4, 0.6, 0.8)]
    return min(ends, key=lambda end: end[0])[1]


def pairs(rows, apart=0.0):
    """Counts the pairs of one model and device whose published speeds differ by more than
    `apart`. Returns the pairs whose faster run is predicted faster, and all pairs."""
    right = count = 0
    groups = defaultdict(list)
    for run, predicted in rows:
        tokens = run.batch * run.sequence / run.tensor
        groups[run.model, run.hardware].append((run.ms / tokens, predicted / tokens))
    for group in groups.values():
        for (seen, said), (other_seen, other_said) in itertools.combinations(group, 2):
            if abs(math.log(seen / other_seen)) > apart:
                count += 1
                right += (seen < other_seen) == (said < other_said)
    return f"{right} of {count} ({100 * right // max(1, count)} %)"


def summarize(name, rows):
    errors = [abs(predicted / run.ms - 1) for run, predicted in rows]
    print(f"| {name} | {len(rows)} | {100 * statistics.median(errors):.1f} % |"
          f" {100 * statistics.mean(errors):.1f} % | {sum(e <= 0.2 for e in errors)} |"
          f" {pairs(rows)} | {pairs(rows, 0.05)} |")


def tell(title, rows, fitted_on):
    print(f"\n{title}\n\n| | runs | median error | mean error | within 20 % |"
          " pairs in order | of those 5 % apart |\n|---|---|---|---|---|---|---|")
    judged = [row for row in rows if row[0].hardware not in fitted_on]
    summarize("**judged**" if fitted_on else "**all**", judged)
    for device in DEVICES:
        of_device = [row for row in rows if row[0].hardware == device]
        summarize(device + (", fitted on" if device in fitted_on else ""), of_device)


def table(rows, presets):
    print("\n| source | model | device | GPUs | TP | tokens x batch | done again | kernels |"
          " 8-bit | published, ms | predicted, ms | error | by presets |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for (run, ms), (_, preset_ms) in zip(rows, presets):
        print(f"| {run.source} | {run.model} | {run.hardware} | {run.gpus} | {run.tensor} |"
              f" {run.sequence} x {run.batch} | {run.recompute} | {run.kernels} |"
              f" {'yes' if run.float8 else ''} | {run.ms:.0f} | {ms:.0f} |"
              f" {100 * (ms / run.ms - 1):+.0f} % | {100 * (preset_ms / run.ms - 1):+.0f} % |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--graphs", type=pathlib.Path, required=True, metavar="DIR")
    options = parser.parse_args()
    options.graphs.mkdir(parents=True, exist_ok=True)
    runs = read_runs()
    figures = preset_figures(options.binary)
    priced = [preset_rates(run, figures) for run in runs]
    parts = [parts_of_run(options.binary, run, rates, options.graphs)
             for run, rates in zip(runs, priced)]

    def predicted(rates_of):
        return [(run, step_ms(run, part, rates_of(run), rates))
                for run, part, rates in zip(runs, parts, priced)]

    tables = []
    for generation, fitted_on in GENERATIONS.items():
        fitting = [i for i, run in enumerate(runs) if run.hardware in fitted_on]
        shares = fit(*([of[i] for i in fitting] for of in (runs, parts, priced)))
        tables.append(predicted(lambda run: fitted_rates(run, shares)))
        said = ", ".join(f"{name} {value}" for name, value in shares.items())
        tell(f"Shares fitted on {generation}: {said}.", tables[-1], fitted_on)
    presets = predicted(lambda run: preset_rates(run, figures))
    tell("The presets as they are, nothing fitted:", presets, ())
    print("\nEach run, as predicted by what was fitted on ampere:")
    table(tables[0], presets)


if __name__ == "__main__":
    main()
