#!/usr/bin/env python3
"""Compares measured training steps on one GPU with the predictions of shardprop.

  measured_steps.py measure [--models NAMES] [--ways eager compiled] >measured.json
      On the machine with the GPU: forward and backward pass as eager PyTorch and
      compiled, their time, what it is spent on, and the peak of memory.
  measured_steps.py table SHARDPROP MEASURED --graphs DIR [--device NAME]
      Anywhere: the predictions for what was measured, and both as a table. MEASURED is
      measured.json or measured_steps.tsv, which has the steps measured so far.
  measured_steps.py rates SHARDPROP MEASURED --graphs DIR [--device NAME]
      The same as a table of kernels, which `shardprop topologies --fit steps=FILE` reads.

A step is the forward pass, the loss and the gradients, without an optimizer. Times are
measured by CUDA events. Each is the median of several steps after unmeasured warm-up steps.
"""

import argparse
import csv
import gc
import json
import pathlib
import statistics
import subprocess
import sys

import torch
from torch.utils._pytree import tree_map

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "python/shardprop/torch"), str(ROOT / "tools"), str(HERE)]
import published_models  # noqa: E402
from models import MODELS as NAMED  # noqa: E402

PRESET = {"NVIDIA H100 80GB HBM3": "dgx-h100", "NVIDIA H200": "dgx-h200"}
WARM, TIMED = 3, 7
WAYS = ("eager", "compiled")  # the values of --execution
PRODUCTS = ("matmul", "convolution")


def published(name, batch, sequence, layers):
    return lambda training: published_models.MODELS[name](batch, sequence, layers)


# Models that fit on one GPU: complete models, and the first layers of larger ones.
MODELS = {
    "mpt-125m, 16 x 2048": published("mpt-125m", 16, 2048, 12),
    "mpt-1b, 4 x 2048": published("mpt-1b", 4, 2048, 24),
    "mpt-7b, 4 layers, 4 x 2048": published("mpt-7b", 4, 2048, 4),
    "llama3-8b, 4 layers, 2 x 8192": published("llama3-8b", 2, 8192, 4),
    "llama3-8b, 4 layers, 8 x 2048": published("llama3-8b", 8, 2048, 4),
    "llama3-70b, 2 layers, 2 x 4096": published("llama3-70b", 2, 4096, 2),
    "gpt-22b, 2 layers, 4 x 2048": published("gpt-22b", 4, 2048, 2),
    "gpt2_124m": NAMED["gpt2_124m"],
    "t5_small": NAMED["t5_small"],
    "resnet50": NAMED["resnet50"],
    "deepseek_moe_8": NAMED["deepseek_moe_8"],
}


def made(name):
    """Returns the model on the GPU with its inputs; weights and ids are sampled."""
    with torch.device("cuda"):
        module, args, *rest = MODELS[name](True)
    module.cuda().train()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.02)
    words = max((e.num_embeddings for e in module.modules()
                 if isinstance(e, torch.nn.Embedding)), default=0)

    def drawn(x):
        if not isinstance(x, torch.Tensor):
            return x
        if x.dtype == torch.int64 and x.ndim > 1:
            return torch.randint_like(x, words, device="cuda")
        return x.cuda()

    return module, *(tree_map(drawn, part) for part in (args, rest[0] if rest else {}))


def time_of(step):
    """Milliseconds of a step, and the most bytes allocated while it runs."""
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(TIMED):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times), torch.cuda.max_memory_allocated()


# Kinds of kernels, by words in the names that libraries give them.
KINDS = {
    "attention": ("flash", "fmha", "sdpa", "attention"),
    "convolution": ("conv", "implicit", "fprop", "dgrad", "wgrad", "xmma_new"),
    "matmul": ("gemm", "nvjet", "cutlass", "splitk", "cublas", "gemv"),
}


def kind_of(kernel):
    name = kernel.lower()
    for kind, words in KINDS.items():
        if any(word in name for word in words):
            return kind
    return "pass"


def spent_on(step):
    """Returns milliseconds of GPU time by kind of kernel in one step, and its kernels."""
    activity = torch.profiler.ProfilerActivity.CUDA
    with torch.profiler.profile(activities=[activity]) as profile:
        step()
        torch.cuda.synchronize()
    kinds, kernels = {}, {}
    for event in profile.events():
        if event.device_type != torch.autograd.DeviceType.CUDA:
            continue
        took = event.time_range.elapsed_us() / 1e3
        kind = kind_of(event.name)
        kinds[kind] = kinds.get(kind, 0) + took
        count, total = kernels.get(event.name[:100], (0, 0))
        kernels[event.name[:100]] = (count + 1, total + took)
    longest = sorted(kernels.items(), key=lambda item: -item[1][1])[:12]
    return kinds, longest


def measure(names, ways):
    torch.set_float32_matmul_precision("highest")
    found = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "runs": []}
    for name in names:
        for way in ways:
            torch._dynamo.reset()
            gc.collect()  # modules whose forward was replaced refer to themselves
            torch.cuda.empty_cache()
            try:
                module, args, kwargs = made(name)
                call = module if way == "eager" else torch.compile(module)

                def step():
                    module.zero_grad(set_to_none=True)
                    loss = call(*args, **kwargs)
                    (loss[0] if isinstance(loss, tuple) else loss).backward()

                ms, peak = time_of(step)
                kinds, kernels = spent_on(step)
                run = {"model": name, "way": way, "ms": ms, "peak_bytes": peak,
                       "kinds": kinds, "kernels": kernels}
            except Exception as error:  # The others are measured all the same.
                run = {"model": name, "way": way, "error": f"{error}"[:300]}
            found["runs"].append(run)
            print(json.dumps({k: v for k, v in run.items() if k != "kernels"}),
                  file=sys.stderr, flush=True)
            module = args = kwargs = call = step = None
    print(json.dumps(found, indent=1))


def graph_of(name, folder):
    from exporting import metadata, program, write

    path = folder / (name.replace(" ", "_").replace(",", "") + ".json.gz")
    if not path.exists():
        graph = program.export_program(MODELS[name], training=True, device="cuda",
                                       composite=False, loss_index=0)
        metadata.trim(graph)
        write.write(graph, str(path), "cuda")
    return path


def predicted(binary, graph, preset, way):
    done = subprocess.run(
        [binary, "explain", graph, "--mesh", "1", "--topology", preset, "--optimizer",
         "none", "--memory", "none", "--execution", way, "--format", "json"],
        capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def measured_runs(path, device):
    """Returns the measured steps of a device, with the milliseconds of kernels by kind."""
    if path.suffix == ".json":
        found = json.loads(path.read_text())
        return [dict(run, device=found["device"]) for run in found["runs"]]
    runs = []
    with open(path) as file:
        for row in csv.DictReader((l for l in file if l[0] != "#"), delimiter="\t"):
            if row["device"] != device:
                continue
            kinds = {kind: float(row[f"{kind}_ms"]) for kind in ("matmul", "attention", "pass")}
            runs.append({"device": device, "model": row["step"], "way": row["way"],
                         "ms": float(row["step_ms"]), "busy": float(row["busy_ms"]),
                         "peak_bytes": float(row["peak_gib"]) * 2**30, "kinds": kinds})
    return runs


def predicted_kinds(plan):
    """Returns the predicted milliseconds of kernels by kind."""
    kinds = {}
    for node in plan["nodes"]:
        kind = node.get("kind", "optimizer")
        if kind not in PRODUCTS and kind != "attention":
            kind = "pass"
        kinds[kind] = kinds.get(kind, 0) + node["compute_us"] / 1e3
    return kinds


def compared(options):
    """Yields the measured steps and their plans."""
    options.graphs.mkdir(parents=True, exist_ok=True)
    for run in measured_runs(options.measured, options.device):
        if "error" not in run:
            plan = predicted(options.binary, graph_of(run["model"], options.graphs),
                             PRESET[run["device"]], run["way"])
            yield run, plan


def rates(options):
    print("# kind measured-ms predicted-ms")
    for run, plan in compared(options):
        kinds = predicted_kinds(plan)
        rows = [("matmul", ("matmul",)), ("attention", ("attention",)),
                ("eager-memory" if run["way"] == "eager" else "memory", ("pass",))]
        for name, of in rows:
            seen, said = (sum(times.get(kind, 0) for kind in of)
                          for times in (run["kinds"], kinds))
            if seen > 0 and said > 0:
                print(f"{name} {seen:.3f} {said:.3f}")


def table(options):
    print("| step | way | step ms | GPU busy ms | said ms | said / busy | products "
          "| attention | passes | peak GiB | said GiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    near = {}
    for run, plan in compared(options):
        said = predicted_kinds(plan)

        def both(*kinds):
            seen = sum(run["kinds"].get(kind, 0) for kind in kinds)
            return seen, sum(said.get(kind, 0) for kind in kinds)

        def note(name, pair):
            if pair[0] > 0:
                off = abs(pair[1] / pair[0] - 1)
                near.setdefault((run["way"], name), []).append(off <= 0.15)
            return "{:.2f} / {:.2f}".format(*pair)

        busy = run.get("busy", sum(run["kinds"].values()))
        total = plan["objective_us"] / 1e3
        note("step", (busy, total))
        print(f"| {run['model']} | {run['way']} | {run['ms']:.2f} | {busy:.2f} "
              f"| {total:.2f} | {100 * (total / busy - 1):+.0f} % "
              f"| {note('products', both(*PRODUCTS))} "
              f"| {note('attention', both('attention'))} | {note('passes', both('pass'))} "
              f"| {run['peak_bytes'] / 2**30:.2f} "
              f"| {plan['memory']['peak_bytes_per_rank'] / 2**30:.2f} |", flush=True)
    print("\n| within 15 % of the measurement | " + " | ".join(WAYS) + " |\n|---|---|---|")
    for name in ("step", "products", "attention", "passes"):
        cells = (near.get((way, name), []) for way in WAYS)
        print(f"| {name} | " + " | ".join(f"{sum(c)} of {len(c)}" for c in cells) + " |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("measure")
    one.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    one.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    for verb in ("table", "rates"):
        two = verbs.add_parser(verb)
        two.add_argument("binary")
        two.add_argument("measured", type=pathlib.Path)
        two.add_argument("--graphs", type=pathlib.Path, required=True)
        two.add_argument("--device", choices=PRESET, default="NVIDIA H100 80GB HBM3")
    arguments = parser.parse_args()
    if arguments.verb == "measure":
        measure(arguments.models, arguments.ways)
    else:
        {"table": table, "rates": rates}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
