"""What fused kernels read and write, beside what PyTorch's scheduler counts.

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
from torch._inductor.fx_passes import fusion_regions

SHARDPROP = os.environ.get("SHARDPROP_BIN", "build/release/tools/shardprop")
DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
    "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
    "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
    "u64": torch.uint64,
}
# The aim is 0.15: reads of a value by several operators of a kernel are counted
# once here and once an operator there, and a lookup reads rows here, tables there.
TOLERANCE = 0.4


def plan_of(path):
    done = subprocess.run(
        [SHARDPROP, "explain", path, "--mesh", "x=1", "--memory", "none",
         "--format", "json"],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def tensor(entry):
    return torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]], device="meta")


def target_of(name):
    _, op, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, op), overload)


def fx_graph(plan):
    """The program with its values' shapes; arguments that are no tensors are
    left out, as nothing here looks at them."""
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


def bytes_of(values):
    return sum(v.numel() * v.element_size() for v in values
               if isinstance(v, torch.Tensor))


def fused_bytes(module):
    """Read and written over the borders of torch's regions."""
    import torch.utils._runtime_estimation as estimation

    before = estimation.get_transfer_time
    estimation.get_transfer_time = lambda reads, writes: 1e6 * (
        bytes_of(reads) + bytes_of(writes))
    try:
        regions = fusion_regions.build_fusion_regions(module)
        return sum(fusion_regions.estimate_fused_node_costs(regions).values())
    finally:
        estimation.get_transfer_time = before


class FusionRegions(unittest.TestCase):
    def test_fused_bytes(self):
        paths = sorted(glob.glob("examples/graphs/tiny/*.json.gz"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            with self.subTest(path=path):
                plan = plan_of(path)
                theirs = fused_bytes(fx_graph(plan))
                ours = plan.get("kernels", {}).get("bytes_per_rank", 0)
                print(f"{os.path.basename(path):36} {ours:10.0f} {theirs:10.0f}"
                      f" {ours / theirs if theirs else 1:6.3f}")
                self.assertLess(abs(ours - theirs), TOLERANCE * max(theirs, 1))


if __name__ == "__main__":
    unittest.main()
