#!/usr/bin/env python3
"""Compares the prices of full programs on one rank with a count by hand.

    scripts/count_prices.py build/release/tools/shardprop > bench/results/prices.md

The count uses only the shapes of operands and results, and the rates of the device. A
multiply-add is two operations. Causal attention counts half, and its backward pass five
matmuls for two. Convolutions of f32 run in TF32. Other operators count the bytes that
they read and write. Matmuls and convolutions are counted once more as tiles in rounds
over the multiprocessors.
"""

import gzip
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

GRAPHS = ["llama3_8b_train", "gpt2_124m_train", "resnet50_train", "t5_small_train"]
ITEM = {"f64": 8, "f32": 4, "i64": 8, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}
PEAK = {"f64": 67e12, "f32": 67e12, "f16": 989e12, "bf16": 989e12}
TF32_PEAK = 494e12  # of f32, where PyTorch multiplies so by default: convolutions
MEMORY = 3350e9
MULTIPROCESSORS = 132
# Possible sides of a tile, and its largest and smallest size. FED is the number of
# products for each loaded number in a tile of 128 by 128, which feeds the 16-bit
# multipliers.
SIDES = (16, 32, 64, 128, 256)
LARGEST, SMALLEST = 256 * 128, 128 * 16
FED = 128 * 128 / (128 + 128)
# Graphs with causal attention, since the plan does not record the mask.
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


def products_of(node, inputs):
    """Returns (batch, rows, columns, depth) of each matmul; none for memory-bound
    kernels."""
    name = node["op"].split(".")[1]
    if name in ("mm", "bmm", "addmm", "baddbmm"):
        left, right = (tensor["shape"] for tensor in inputs[-2:])
        return [(math.prod(left[:-2]), left[-2], right[-1], left[-1])]
    if "convolution" not in name:
        return []
    backward = name == "convolution_backward"
    image, weight = (t["shape"] for t in (inputs[1:3] if backward else inputs[:2]))
    out = (inputs[0] if backward else node["outputs"][0])["shape"]
    window = math.prod(weight[2:])
    places = math.prod(out) // out[1]
    if not backward:
        return [(1, places, out[1], weight[1] * window)]
    # The backward pass has one matmul for the image and one for the weight. Each place
    # of the image has as many products as the window has over the stride.
    products = []
    if node["outputs"][0]["shape"] == image:
        pixels = math.prod(image) // image[1]
        products.append((1, pixels, weight[1], out[1] * window * places / pixels))
    products.append((1, weight[0], weight[1] * window, places))
    return products


def attention_flops(node, inputs, causal):
    backward = "backward" in node["op"]
    query, key = (inputs[1], inputs[2]) if backward else inputs[:2]
    batch, heads, length, depth = query["shape"]
    masked = 0.5 if "flash" in node["op"] or causal else 1
    products = 5 if backward else 2
    return products * 2 * batch * heads * length * key["shape"][2] * depth * masked


class Shares:
    """The shares of the peaks that kernels reach, and the times of a kernel: the figures
    that are measured, and not counted."""

    def __init__(self, shardprop):
        listed = subprocess.run(
            [shardprop, "topologies", "--topology", "dgx-h100", "--format", "json"],
            check=True, capture_output=True, text=True)
        figures = {key: figure["value"]
                   for key, figure in json.loads(listed.stdout)[0]["figures"].items()}
        self.products = figures["device.efficiency"] * (figures["device.sustained"] or 1)
        self.attention_128 = figures["device.attention_efficiency"]
        self.half_dim = figures["device.attention_half_dim"]
        self.memory = figures["eager.memory_efficiency"] or figures["device.memory_efficiency"]
        self.launch = figures["device.launch_us"] * 1e-6
        self.ramp = figures["device.ramp_us"] * 1e-6

    def attention(self, head_dim):
        at = head_dim / (head_dim + self.half_dim)
        return self.attention_128 * at / (128 / (128 + self.half_dim))

    def seconds(self, *work):
        return max(self.ramp + max(work), self.launch)


def in_tiles(product, item, rate, shares):
    """Returns the seconds of a matmul at the peak in its best tiles, and the bytes of
    partial sums. The time is the number of rounds over the multiprocessors. It is
    longer if a tile has too few products for each loaded number. Long sums may be
    split; their parts are then written and read."""
    batch, rows, columns, depth = product

    def together(spent):
        return spent[0] / shares.products + spent[1] / (shares.memory * MEMORY)

    needed = FED * rate * item / (PEAK["bf16"] * 2)
    best = (math.inf, 0)
    for split in (1, 2, 4, 8, 16):
        if split > 1 and depth / split < 256:
            break
        parts = 2 * 4 * split * batch * rows * columns if split > 1 else 0
        for height in SIDES:
            for width in SIDES:
                if not SMALLEST <= height * width <= LARGEST:
                    continue
                tiles = batch * split * math.ceil(rows / height) * math.ceil(columns / width)
                rounds = math.ceil(tiles / MULTIPROCESSORS)
                of_a_tile = 2 * height * width * depth / split * MULTIPROCESSORS / rate
                fed = min(1, height * width / (height + width) / needed)
                best = min(best, (rounds * of_a_tile / fed, parts), key=together)
    return best


def counted(node, inputs, causal, shares):
    """Returns the seconds without the losses of tiles and rounds, and with them."""
    tensors = inputs + node["outputs"]
    traffic = sum(bytes_of(t) for t in tensors) / (shares.memory * MEMORY)
    kind = kind_of(node["op"])
    if kind.startswith("attention"):
        flops = attention_flops(node, inputs, causal)
        rate = shares.attention(inputs[0]["shape"][-1]) * PEAK[inputs[0]["dtype"]]
        return (shares.seconds(flops / rate, traffic),) * 2
    products = products_of(node, inputs)
    if not products:
        return (shares.seconds(traffic),) * 2
    dtype = inputs[0]["dtype"]
    in_tf32 = dtype == "f32" and kind == "convolutions"
    rate = TF32_PEAK if in_tf32 else PEAK[dtype]
    plain = sum(2 * math.prod(product) / rate for product in products)
    tiled = [in_tiles(product, ITEM[dtype], rate, shares) for product in products]
    spent = sum(seconds for seconds, _ in tiled)
    parts = sum(parts for _, parts in tiled) / (shares.memory * MEMORY)
    return (shares.seconds(plain / shares.products, traffic),
            shares.seconds(spent / shares.products, traffic + parts))


def undecomposed(graph, folder):
    """Returns a copy of a graph that has lost the operators from which its own were
    decomposed. So each of its operators has a kernel of its own."""
    text = gzip.decompress(pathlib.Path(f"examples/graphs/{graph}.json.gz").read_bytes())
    path = pathlib.Path(folder) / f"{graph}.json"
    path.write_bytes(re.sub(rb', \\"decomposed_from\\": \\"[^"\\]*\\"', b"", text))
    return path


def table(shardprop, graph):
    """Returns, by kind of operator: number, ms as priced, as counted, as counted in
    tiles."""
    shares = Shares(shardprop)
    with tempfile.TemporaryDirectory() as folder:
        plan = json.loads(
            subprocess.run(
                [shardprop, "explain", undecomposed(graph, folder), "--mesh", "x=1",
                 "--memory", "none", "--fusion", "none", "--optimizer", "none",
                 "--format", "json"],
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
        row = rows.setdefault(kind_of(node["op"]), [0, 0.0, 0.0, 0.0])
        row[0] += 1
        row[1] += node["compute_us"] / 1e3
        plain, tiled = counted(node, inputs, graph.startswith(CAUSAL), shares)
        row[2] += plain * 1e3
        row[3] += tiled * 1e3
    return rows


def main():
    print("# Prices on one rank beside a count by hand\n")
    print("`scripts/count_prices.py`, topology dgx-h100, one rank, without fusion; in ms."
          "\nThe count by hand leaves out what tiles and rounds of tiles lose; the last"
          "\ncolumns count that, too. Shares of the peaks are those of the preset.\n")
    print("| graph | kind | operators | priced | by hand | ratio | in tiles | ratio |"
          "\n|---|---|---|---|---|---|---|---|")
    for graph in GRAPHS:
        for kind, (count, priced, hand, tiled) in sorted(table(sys.argv[1], graph).items()):
            print(f"| {graph} | {kind} | {count} | {priced:.3f} | {hand:.3f} | "
                  f"{priced / hand:.3f} | {tiled:.3f} | {priced / tiled:.3f} |")


if __name__ == "__main__":
    main()
