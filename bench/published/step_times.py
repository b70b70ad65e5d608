#!/usr/bin/env python3
"""Published step times of training beside what shardprop predicts.

    bench/published/step_times.py SHARDPROP GRAPHS > bench/results/believable.md

GRAPHS is a folder with the graphs of published_models.py. Recipes are pinned, not
searched for. One constant, the share of peak that kernels reach
(device.efficiency), is fitted on one row of one hardware; the others are judged
with it. What a graph lacks is added by hand and said: operators that activation
checkpointing runs again.
"""

import json
import os
import subprocess
import sys
import tempfile

# tokens a second and rank; `again`: the share of the forward pass that runs twice.
ROWS = [
    # pytorch/torchtitan docs/performance.md, H100 at 500 W, 2.4 TB/s, selective AC
    # of every second product.
    dict(name="Llama 3.1 8B, 8 H100, compiled", graph="llama3_8b_16", mesh="dp=8",
         topology="h100", fusion="compiler", again=0.5, tokens=6667, fit=True),
    dict(name="Llama 3.1 8B, 8 H100, eager", graph="llama3_8b_16", mesh="dp=8",
         topology="h100", fusion="none", again=0.5, tokens=5762),
    dict(name="Llama 3.1 8B, 128 H100, compiled", graph="llama3_8b_256", mesh="dp=128",
         topology="h100", fusion="compiler", again=0.5, tokens=6514),
    dict(name="Llama 3.1 8B, 128 H100, eager", graph="llama3_8b_256", mesh="dp=128",
         topology="h100", fusion="none", again=0.5, tokens=5605),
    # The same, an older version: A100, FSDP2.
    dict(name="Llama 3 8B, 64 A100", graph="llama3_8b_64", mesh="dp=64",
         topology="a100", fusion="compiler", again=0.5, tokens=2938),
    dict(name="Llama 2 13B, 64 A100, no AC", graph="llama2_13b_128", mesh="dp=64",
         topology="a100", fusion="compiler", again=0.0, tokens=2162),
]
HARDWARE = {
    "h100": ("dgx-h100", {"device": {"memory_gbps": 2400}, "network": {"bandwidth_gbps": 48}}),
    "a100": ("dgx-a100", {}),
}
PINS = ["*.weight=S(0)", "input_ids=S(0)", "labels=S(0)"]


def topology_file(name, efficiency, folder):
    base, changes = HARDWARE[name]
    sections = {k: dict(v) for k, v in changes.items()}
    sections.setdefault("device", {})["efficiency"] = efficiency
    text = f'base = "{base}"\nname = "{name}"\n'
    for section, values in sections.items():
        text += f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items())
    path = os.path.join(folder, f"{name}.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def predicted(row, efficiency, shardprop, graphs):
    """Tokens a second and rank, and the plan's own totals in ms."""
    with tempfile.TemporaryDirectory() as folder:
        command = [shardprop, "explain", f"{graphs}/{row['graph']}.json.gz",
                   "--mesh", row["mesh"], "--optimizer", "adamw", "--memory", "none",
                   "--fusion", row["fusion"], "--overlap", "1", "--time-limit", "30",
                   "--topology", topology_file(row["topology"], efficiency, folder),
                   "--format", "json"]
        for pin in PINS:
            command += ["--pin", pin]
        plan = json.loads(subprocess.run(command, check=True, capture_output=True,
                                         text=True).stdout)
    forward = sum(n["compute_us"] for n in plan["nodes"] if n["phase"] == "forward")
    step = plan["objective_us"] + row["again"] * forward
    batch, sequence = plan["values"]["input_ids"]["shape"]
    ranks = 1
    for dim in plan["mesh"]["dims"]:
        ranks *= dim["size"]
    summary = plan["summary"]
    return batch * sequence / ranks / (step * 1e-6), [
        step / 1e3, summary["compute_us"] / 1e3, summary["communication_us"] / 1e3,
        summary["hidden_us"] / 1e3]


def fitted(shardprop, graphs):
    row = next(r for r in ROWS if r.get("fit"))
    low, high = 0.3, 1.0
    for _ in range(6):
        middle = (low + high) / 2
        if predicted(row, middle, shardprop, graphs)[0] < row["tokens"]:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 3)


def main():
    shardprop, graphs = sys.argv[1:3]
    rows = [r for r in ROWS if os.path.exists(f"{graphs}/{r['graph']}.json.gz")]
    efficiency = fitted(shardprop, graphs)
    print("# Published step times beside the predicted\n")
    print("\n".join(__doc__.strip().split("\n\n")[2].splitlines()) + "\n")
    print(f"FSDP (`{'`, `'.join(PINS)}`), AdamW in mixed precision, `--overlap 1`,"
          f" `--memory none`. device.efficiency = {efficiency}, fitted on the first row.\n")
    print("| run | published tokens/s a rank | predicted | error | step ms | compute |"
          " communication | hidden |\n|---|---|---|---|---|---|---|---|")
    errors = []
    for row in rows:
        tokens, totals = predicted(row, efficiency, shardprop, graphs)
        error = tokens / row["tokens"] - 1
        if not row.get("fit"):
            errors.append((abs(error), row["topology"]))
        print(f"| {row['name']} | {row['tokens']} | {tokens:.0f} | {100 * error:+.1f} % | "
              + " | ".join(f"{t:.1f}" for t in totals) + " |")
    other = sorted(e for e, topology in errors if topology != "h100")
    if other:
        print(f"\nMedian error on hardware that nothing was fitted on:"
              f" {100 * other[len(other) // 2]:.1f} %.")
    left_out = [r["name"] for r in ROWS if r not in rows]
    if left_out:
        print("\nNot run, the graph is missing: " + "; ".join(left_out) + ".")


if __name__ == "__main__":
    main()
