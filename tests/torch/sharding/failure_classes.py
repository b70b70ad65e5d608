"""Names the class of a failure: what kind of mistake of a rule it shows.

The classes are those of bench/results/proof_classes.md. They only sort the
output of the proof; a failure that fits no class is "other".
"""

import torch

CLASSES = {
    "A": "the command dies",
    "B": "the output of an in-place view keeps the input's shape",
    "C": "an arange's step or length",
    "D": "a rank without elements",
    "E": "`out` has another partial than the result",
    "F": "the local program has another dtype",
    "G": "a negative index",
    "H": "the bias of a convolution of an empty batch",
    "I": "a source longer than its index",
    "J": "a cast inside the operator that is not linear",
    "K": "a sum that casts floats to integers first",
    "L": "a sum of truth values",
    "M": "arithmetic that wraps round",
    "N": "a sum of bytes that wraps round, kept by what promotes them",
    "other": "none of these",
}

_OTHER_DTYPE = ("not torch.", "dtypes match", "same dtype", "scalar type")
_VIEWS = ("unsqueeze_", "squeeze_", "t_", "transpose_", "swapdims_", "swapaxes_")


def _kinds(strategy):
    """(operand, reduction) of the partial inputs."""
    return [
        (i, entry[2:-1])
        for i, layout in enumerate(strategy["inputs"])
        for entry in layout
        if entry.startswith("P(")
    ]


def class_of(call, strategy, why, inputs):
    """Returns a letter, or "other". `inputs` are the values of the operands."""
    base = call.op.split(".")[1]
    dtypes = [meta.dtype for meta in call.inputs]
    if why.startswith("died"):
        return "A"
    if base in _VIEWS:
        return "B"
    if base == "arange":
        return "C"
    if strategy is None:
        return "other"
    partial = _kinds(strategy)
    if "does not lie as operand" in why:
        return "E"
    if base == "convolution_backward" and 0 in call.inputs[0].shape:
        return "H"
    if any(part in why for part in _OTHER_DTYPE):
        return "F"
    if base.startswith("index_put") and "Error" not in why:
        indices = [t for t in inputs[1:-1] if t.numel() and t.dtype != torch.bool]
        if any(int(t.min()) < 0 for t in indices):
            return "G"
    if base.startswith("scatter") and "src" in dict(call.args):
        source, index = (call.inputs[call.arg(n).index].shape for n in ("src", "index"))
        if any(s > i for s, i in zip(source, index, strict=True)):
            return "I"
    if partial:
        partial_dtypes = {dtypes[i] for i, _ in partial}
        wider = call.outputs[0].dtype not in ("u8", "i8", "bool")
        kinds = {kind for _, kind in partial}
        if partial_dtypes & {"u8", "i8"} and wider and kinds & {"sum", "product"}:
            return "N"
        if base.startswith(("copy", "slice_scatter")) and len(set(dtypes)) > 1:
            return "J"
        if base.startswith("sum") and call.arg("dtype") is not None:
            return "K"
        if "bool" in partial_dtypes:
            return "L"
        if kinds <= {"max", "min"}:
            return "M"
    if "Error" in why:
        return "D"
    return "other"
