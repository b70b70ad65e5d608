#!/usr/bin/env python3
"""Cuts a saved graph of a model with repeated layers to fewer layers.

  tools/cut_layers.py llama70b.json.gz --layers 4 -o llama70b_4.json.gz

The first layers and the last one remain. The nodes of a layer are those whose module
path has its number; a node without a module path belongs to the layer of the node
before it. A remaining node may read a value of a removed layer. It then reads the value
at the same place of a remaining layer: the last remaining layer before it in the
forward pass, and the last layer in the backward pass. The layers must therefore have
the same nodes in the same order, as in a transformer.
"""

import argparse
import gzip
import json
import re
import sys
from pathlib import Path

LAYER = re.compile(r"\.(?:layers|h|blocks|block)\.(\d+)\b")


def layer_of(node, before):
    stack = node["metadata"].get("nn_module_stack", "")
    if not stack:
        return before
    found = LAYER.findall(stack)
    return int(found[0]) if found else None


def layers_of(nodes):
    layers, before, phase = [], None, None
    for node in nodes:
        now = node["metadata"].get("custom", "")
        now = json.loads(now).get("phase") if now else None
        before = layer_of(node, before if now == phase else None)
        phase = now
        layers.append(before)
    return layers


def names_in(argument):
    """Yields the arguments that name a value, as the dicts that hold the name."""
    if isinstance(argument, dict):
        if isinstance(argument.get("name"), str) and len(argument) == 1:
            yield argument
        else:
            for part in argument.values():
                yield from names_in(part)
    elif isinstance(argument, list):
        for part in argument:
            yield from names_in(part)


def results_of(node):
    return [named["name"] for out in node["outputs"] for named in names_in(out)]


def cut(program, count):
    graph = program["graph_module"]["graph"]
    nodes = graph["nodes"]
    layers = layers_of(nodes)
    numbers = sorted({layer for layer in layers if layer is not None})
    if count < 2 or count >= len(numbers):
        sys.exit(f"--layers: the graph has {len(numbers)} layers: 2 to {len(numbers) - 1} can stay")
    last = numbers[-1]
    kept = {*numbers[: count - 1], last}
    places = {number: [] for number in numbers}  # results by place in the layer
    for node, layer in zip(nodes, layers):
        if layer is not None:
            places[layer].append(results_of(node))
    shapes = {tuple(map(len, place)) for place in places.values()}
    if len(shapes) != 1:
        sys.exit("the layers do not have the same nodes in the same order")
    place_of = {
        name: (layer, at, r)
        for layer, place in places.items()
        for at, results in enumerate(place)
        for r, name in enumerate(results)
    }
    before_the_gap = numbers[count - 2]

    def renamed(name, reader):
        layer, at, r = place_of.get(name, (None, 0, 0))
        if layer is None or layer in kept:
            return name
        is_early = reader is not None and reader <= before_the_gap
        return places[last if is_early else before_the_gap][at][r]

    remaining = []
    for node, layer in zip(nodes, layers):
        if layer is not None and layer not in kept:
            continue
        for argument in node["inputs"]:
            for named in names_in(argument["arg"]):
                named["name"] = renamed(named["name"], layer)
        remaining.append(node)
    graph["nodes"] = remaining
    drop_unread(program, {name for node in remaining for name in results_of(node)})
    return program


def drop_unread(program, made):
    """Removes parameters that no node reads, gradients that no node produces, and the
    records of removed values."""
    module = program["graph_module"]
    graph, signature = module["graph"], module["signature"]
    read = {
        named["name"]
        for node in graph["nodes"]
        for argument in node["inputs"]
        for named in names_in(argument["arg"])
    }

    def name_of(value):
        return next((named["name"] for named in names_in(value)), None)

    keep = [name_of(value) in read for value in graph["inputs"]]
    graph["inputs"] = [value for value, stays in zip(graph["inputs"], keep) if stays]
    signature["input_specs"] = [s for s, stays in zip(signature["input_specs"], keep) if stays]
    alive = made | {name_of(value) for value in graph["inputs"]}
    keep = [name_of(value) in alive for value in graph["outputs"]]
    graph["outputs"] = [value for value, stays in zip(graph["outputs"], keep) if stays]
    signature["output_specs"] = [s for s, stays in zip(signature["output_specs"], keep) if stays]
    graph["tensor_values"] = {k: v for k, v in graph["tensor_values"].items() if k in alive}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph", type=Path)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    program = json.loads(gzip.decompress(args.graph.read_bytes()))
    text = json.dumps(cut(program, args.layers), separators=(",", ":"))
    args.output.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
