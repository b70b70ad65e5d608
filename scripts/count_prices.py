#!/usr/bin/env python3
"""Prices of whole programs on one rank beside a count by hand.

    scripts/count_prices.py build/release/tools/shardprop > bench/results/prices.md

The count knows the shapes of what each operator takes and makes, the rates of
the device and nothing else: two operations a product and sum, causal attention
at half, its backward pass at five products for two, convolutions of f32 in TF32,
other operators by the bytes that they read and write.
"""

import json
import math
import subprocess
import sys

GRAPHS = ["llama3_8b_train", "gpt2_124m_train", "resnet50_train", "t5_small_train"]
ITEM = {"f64": 8, "f32": 4, "i64": 8, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}
PEAK = {"f64": 67e12, "f32": 67e12, "f16": 989e12, "bf16": 989e12}
TF32_PEAK = 494e12  # of f32, where PyTorch multiplies so by default: convolutions
SHARE = 0.7
ATTENTION_SHARE = 0.35
MEMORY = 3350e9
LAUNCH = 7e-6
# Graphs whose attention is causal: which calls mask is not in the plan.
CAUSAL = ("llama", "gpt2")


def bytes_of(tensor):
    return math.prod(tensor["shape"]) * ITEM.get(tensor["dtype"], 1)


def kind_of(op):
    name = op.split(".")[1]
    if "attention" in name:
        return "attention, backward" if "backward" in name else "attention, forward"
    if name in ("mm", "bmm", "addmm", "baddbmm"):
        return "products"
    if "convolution" in name:
        return "convolutions"
    return "other operators"


def flops_of(node, inputs, causal):
    """Of the products; 0 for what is bound by memory."""
    name = node["op"].split(".")[1]
    if "attention" in name:
        query, key = (inputs[1], inputs[2]) if "backward" in name else inputs[:2]
        batch, heads, length, depth = query["shape"]
        masked = 0.5 if "flash" in name or causal else 1
        products = 5 if "backward" in name else 2
        return products * 2 * batch * heads * length * key["shape"][2] * depth * masked
    if name in ("mm", "bmm", "addmm", "baddbmm"):
        left, right = inputs[-2:]
        return 2 * math.prod(left["shape"]) * right["shape"][-1]
    if name == "convolution":
        out = node["outputs"][0]
        return 2 * math.prod(out["shape"]) * math.prod(inputs[1]["shape"][1:])
    if name == "convolution_backward":
        gradient, _, weight = inputs[:3]
        once = 2 * math.prod(gradient["shape"]) * math.prod(weight["shape"][1:])
        wanted = [o for o in node["outputs"] if len(o["shape"]) == len(weight["shape"])]
        return once * len(wanted)
    return 0


def counted(node, inputs, causal):
    tensors = inputs + node["outputs"]
    traffic = sum(bytes_of(t) for t in tensors) / (SHARE * MEMORY)
    flops = flops_of(node, inputs, causal)
    share = ATTENTION_SHARE if "attention" in node["op"] else SHARE
    dtype = inputs[0]["dtype"] if inputs else ""
    in_tf32 = dtype == "f32" and kind_of(node["op"]) == "convolutions"
    rate = share * (TF32_PEAK if in_tf32 else PEAK.get(dtype, 67e12))
    return max(flops / rate, traffic, LAUNCH)


def table(shardprop, graph):
    """By kind of operator: how many, ms as priced, ms as counted."""
    plan = json.loads(
        subprocess.run(
            [shardprop, "explain", f"examples/graphs/{graph}.json.gz", "--mesh", "x=1",
             "--memory", "none", "--fusion", "none", "--format", "json"],
            check=True, capture_output=True, text=True).stdout)
    tensors = dict(plan["values"])
    rows = {}
    for node in plan["nodes"]:
        inputs = [tensors[i["from"]] for i in node["inputs"]]
        names = node.get("result_names") or [node["id"]]
        for index, out in enumerate(node["outputs"]):
            name = out.get("name") or (names[index] if index < len(names) else node["id"])
            tensors[name] = out
        if node["compute_us"] == 0:
            continue
        row = rows.setdefault(kind_of(node["op"]), [0, 0.0, 0.0])
        row[0] += 1
        row[1] += node["compute_us"] / 1e3
        row[2] += counted(node, inputs, graph.startswith(CAUSAL)) * 1e3
    return rows


def main():
    print("# Prices on one rank beside a count by hand\n")
    print("`scripts/count_prices.py`, topology dgx-h100, one rank, without fusion; in ms."
          "\nThe count leaves out what tiles and rounds of tiles lose: what products and"
          "\nconvolutions cost more is that. Attention runs at 0.35 of the\npeak, all else at 0.7.\n")
    print("| graph | kind | operators | priced | by hand | ratio |\n|---|---|---|---|---|---|")
    for graph in GRAPHS:
        for kind, (count, priced, hand) in sorted(table(sys.argv[1], graph).items()):
            print(f"| {graph} | {kind} | {count} | {priced:.3f} | {hand:.3f} | {priced / hand:.3f} |")


if __name__ == "__main__":
    main()
