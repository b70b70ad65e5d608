"""Counts the bytes that the backward phase of a training step gets from the forward
phase: those of eager PyTorch, and those of a plan for one rank.

Parameters, buffers and the inputs of the model do not count.
"""

import gc

import torch
from torch.distributed._tools.mem_tracker import MemTracker

BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}
VIEWS = {
    "alias", "view", "_unsafe_view", "permute", "expand", "squeeze", "unsqueeze",
    "slice", "select", "split", "split_with_sizes", "t", "transpose", "detach",
    "unbind", "as_strided", "reshape",
}


def base_name(target):
    return str(target).split(".")[1] if "." in str(target) else str(target)


def of_eager(model, args=(), kwargs=None):
    """Returns the bytes of activations that MemTracker finds after the forward phase,
    without the loss."""
    kwargs = kwargs or {}
    tracker = MemTracker()
    tracker.track_external(model, *args, *kwargs.values())
    with tracker:
        result = model(*args, **kwargs)
        loss = result if isinstance(result, torch.Tensor) else result.loss
        del result
        gc.collect()
        (found,) = tracker.get_tracker_snapshot("current").values()
        loss.backward()
    model.zero_grad(set_to_none=True)
    kinds = {str(getattr(kind, "value", kind)): size for kind, size in found.items()}
    return kinds["Activation"] - loss.nbytes


def values_of_plan(plan):
    """Returns the bytes of each kept value by its name. `plan` is a plan as JSON for one
    rank."""
    nodes = plan["nodes"]
    last = max(i for i, node in enumerate(nodes) if node["phase"] == "forward")
    made = {}
    for i, node in enumerate(nodes):
        for output in node["outputs"]:
            made[output["name"]] = (i, node, output)
    kept = {}
    for node in nodes[last + 1 :]:
        for read in node["inputs"]:
            name = read["from"]
            while name in made and base_name(made[name][1]["op"]) in VIEWS:
                name = made[name][1]["inputs"][0]["from"]
            if name not in made or made[name][0] > last:
                continue
            output = made[name][2]
            size = BYTES.get(output["dtype"], 1)
            for length in output["shape"]:
                size *= length
            kept[name] = size
    return kept
