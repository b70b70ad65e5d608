"""Compares the bytes that fused kernels read and write with the counts of
PyTorch's scheduler.

The tiny graphs, as `shardprop explain --mesh x=1` lists them, are built anew as
FX graphs; torch._inductor.fx_passes.fusion_regions groups their operators and
says which tensors cross the borders of its groups.
"""

import glob
import json
import operator
import os
import subprocess
import unittest

import torch
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes import fusion_regions
from torch.utils.flop_counter import flop_registry

SHARDPROP = os.environ.get("SHARDPROP_BIN", "build/release/tools/shardprop")
DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
    "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
    "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
    "u64": torch.uint64,
}
TOLERANCE = 0.05
DECOMPOSED = select_decomp_table()


def plan_of(path):
    done = subprocess.run(
        [SHARDPROP, "explain", path, "--mesh", "x=1", "--memory", "none", "--optimizer", "none",
         "--fusion", "compiler", "--format", "json"],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def tensor(entry):
    return torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]], device="meta")


def target_of(name):
    _, op, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, op), overload)


def fx_graph(plan):
    """Returns the program with its values' shapes. Arguments other than tensors
    are left out, because this test does not read them."""
    graph = torch.fx.Graph()
    made = {}
    for name, value in plan["values"].items():
        made[name] = graph.placeholder("p" + str(len(made)))
        made[name].meta["val"] = tensor(value)
    for node in plan["nodes"]:
        if not node["outputs"]:
            continue
        inputs = tuple(made[i["from"]] for i in node["inputs"])
        target = target_of(node["op"])
        args = (list(inputs),) if target == torch.ops.aten.cat.default else inputs
        call = graph.call_function(target, args)
        outputs = [tensor(o) for o in node["outputs"]]
        if len(outputs) == 1:
            call.meta["val"] = outputs[0]
            made[node["outputs"][0]["name"]] = call
            continue
        call.meta["val"] = tuple(outputs)
        for index, entry in enumerate(node["outputs"]):
            item = graph.call_function(operator.getitem, (call, index))
            item.meta["val"] = outputs[index]
            made[entry["name"]] = item
    graph.output(tuple(made[o["from"]] for o in plan["outputs"] if o["from"] in made))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def bytes_of(node):
    value = node.meta["val"]
    values = value if isinstance(value, tuple) else (value,)
    return sum(v.numel() * v.element_size() for v in values)


def shows(node):
    """Whether it makes nothing: a view, or one of several results."""
    return node.target is operator.getitem or fusion_regions.is_view_node(node)


def maker_of(node):
    while shows(node):
        node = node.args[0]
    return node


def takers_of(node):
    """Yields the operators that read the result of a node, through any number
    of views."""
    for user in node.users:
        if shows(user):
            yield from takers_of(user)
        else:
            yield user


def is_taken_apart(node):
    """Returns whether the compiler decomposes the node into pointwise operators
    and reductions before it groups: a cast or a softmax here is several
    operators there."""
    return (node.target in DECOMPOSED
            and node.target.overloadpacket not in flop_registry)


def is_one_operator(region):
    """Returns whether the region fuses nothing. torch counts the results of an
    operator as operators of its region, but they stand for no computation."""
    return sum(not shows(node) for node in region) < 2


def regions_of(module):
    plain = fusion_regions.is_fusible_node
    fusion_regions.is_fusible_node = lambda node: (
        plain(node) or node.target is operator.getitem or is_taken_apart(node))
    try:
        return fusion_regions.build_fusion_regions(module)
    finally:
        fusion_regions.is_fusible_node = plain


def fused_bytes(module):
    """Returns the bytes read and written over the borders of torch's regions: a
    kernel reads or writes every value once. (estimate_fused_node_costs() counts
    reads by operator, and counts the source of a view as written.)"""
    regions = regions_of(module)
    total = 0
    for region in {id(nodes): nodes for nodes in regions.values()}.values():
        if is_one_operator(region):
            continue
        read = set()
        for node in region:
            if shows(node):
                continue
            read.update(taken for taken in node.all_input_nodes
                        if maker_of(taken) not in region)
            several = isinstance(node.meta["val"], tuple)
            for made in node.users if several else [node]:
                if any(taker not in region for taker in takers_of(made)):
                    total += bytes_of(made)
        total += sum(min(bytes_of(taken), bytes_of(maker_of(taken)))
                     for taken in read)
    return total


class FusionRegions(unittest.TestCase):
    def test_fused_bytes(self):
        # Composite operators are taken apart before PyTorch looks at groups.
        paths = sorted(path for path in glob.glob("examples/graphs/tiny/*.json.gz")
                       if "composite" not in path)
        self.assertGreater(len(paths), 10)
        for path in paths:
            with self.subTest(path=path):
                plan = plan_of(path)
                theirs = fused_bytes(fx_graph(plan))
                ours = plan.get("kernels", {}).get("bytes_per_rank", 0)
                print(f"{os.path.basename(path):36} {ours:10.0f} {theirs:10.0f}"
                      f" {ours / theirs if theirs else 1:6.3f}")
                self.assertLessEqual(abs(ours - theirs), TOLERANCE * theirs)


if __name__ == "__main__":
    unittest.main()
