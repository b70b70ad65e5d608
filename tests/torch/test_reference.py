"""Compares the reference's results with PyTorch's on sampled calls.

  python tests/torch/test_reference.py --values build/release/tests/oracle/op_values

Samples calls for every operator that the reference has (`op_values --list`) and
PyTorch knows, as the proof of the rules does (sharding/drawn_calls). Dtypes are
mixed and each in its own arithmetic; there are in-place and out= overloads,
empty, 0-d and permuted operands, negative and repeated indices. PyTorch
computes them in f64 if it can: the test compares the definition, not the
rounding of a kernel. Prints the counts; exits 1 if a result differs, or if
fewer operators than `--least` were compared.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch  # noqa: E402

from sharding import capture  # noqa: E402
from sharding.ask import ask  # noqa: E402
from sharding.drawn_calls import draw_calls  # noqa: E402
from sharding.kernel_quirks import quirk_of  # noqa: E402
from sharding.processes import run_each  # noqa: E402
from sharding.words import in_short, slice_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
_TOLERANCE = {
    torch.float64: 1e-8,
    torch.complex128: 1e-8,
    torch.float32: 2e-4,
    torch.complex64: 2e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
}
_PRIM_REDUCTIONS = (
    "prims.amax.default",
    "prims.amin.default",
    "prims.prod.default",
    "prims.sum.default",
)
# Outputs that are uninitialised memory: what GPU kernels keep of random streams.
_UNDEFINED = {"aten._scaled_dot_product_flash_attention.default": {2}}
_MOST_SECONDS = 300  # for one operator
# The order of equal elements is PyTorch's own business.
_TIES = ("topk", "sort", "argsort", "kthvalue", "median", "nanmedian", "mode", "max.dim",
         "min.dim", "argmax", "argmin")  # fmt: skip


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    build = ROOT / "build/release"
    parser.add_argument(
        "--values",
        default=os.environ.get(
            "SHARDPROP_OP_VALUES", str(build / "tests/oracle/op_values")
        ),
    )
    parser.add_argument("--op", nargs="+", help="only operators with one of these")
    parser.add_argument("--calls", type=int, default=8, help="of each operator (8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slice", type=slice_of, default=(1, 1))
    parser.add_argument("--least", type=int, default=300, help="operators (300)")
    parser.add_argument("--show", type=int, default=2)
    return parser.parse_args()


def listed(values):
    done = subprocess.run(
        [values, "--list"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def known(name):
    try:
        return capture.torch_op(name) is not None
    except (AttributeError, RuntimeError, ValueError):
        return False


def to_hex(tensor):
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes().hex() if flat.numel() else ""


def from_hex(text, meta):
    dtype = capture.TORCH_DTYPES[meta.dtype]
    data = bytes.fromhex(text)
    if not data:
        return torch.empty(meta.shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(meta.shape)


def prim_reduction(op, inp, dims, **options):
    """Follows PyTorch's meta function, by which programs are exported: it
    reduces no dims if none are named, and keeps the dtype of the operand.
    PyTorch's kernels instead reduce all dims if none are named, and widen
    integers."""
    declared = op(inp.to("meta"), dims, **options)
    if not dims:
        inp, dims = inp.unsqueeze(-1), (inp.ndim,)
    return op(inp, dims, **options).to(declared.dtype).reshape(declared.shape)


def wanted(drawn):
    """Returns PyTorch's results on unwritten copies of the operands."""

    def given(value):
        if isinstance(value, capture.Operand):
            return drawn.inputs[value.index].clone()
        if isinstance(value, tuple):
            return [given(element) for element in value]
        if isinstance(value, str):
            if value in capture.TORCH_DTYPES:
                return capture.TORCH_DTYPES[value]
            return getattr(torch, value) if value.endswith("_format") else value
        return value

    args = {name: given(value) for name, value in drawn.call.args}
    op = capture.torch_op(drawn.call.op)
    if drawn.call.op in _PRIM_REDUCTIONS:
        return [prim_reduction(op, **args)]
    return capture.flat_tensors(op(**args))


def apart(found, right, loosest):
    if not (right.is_floating_point() or right.is_complex()):
        unequal = int((found != right).sum())
        return f"{unequal} of {right.numel()} elements differ" if unequal else None
    tolerance = max(_TOLERANCE[right.dtype], loosest)
    finite = right[torch.isfinite(right)]
    scale = max(1.0, float(finite.abs().max()) if finite.numel() else 0.0)
    if torch.allclose(
        found, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    ):
        return None
    return f"off by up to {float((found - right).abs().max()):g}"


def with_poles(drawn, results):
    """Corrects the poles of trigamma. The kernel divides by the square of the
    rounded sin(pi x), which is 0 at 0 and meaningless at the other poles."""
    if "polygamma" not in drawn.call.op or drawn.call.arg("n") != 1:
        return results
    x = drawn.inputs[0].double()
    poles = (x <= 0) & (torch.fmod(x, 1) == 0)
    return [results[0].masked_fill(poles, torch.inf)]


def compare(drawn, answer):
    """Returns None, or the difference."""
    right = with_poles(drawn, wanted(drawn))
    if len(answer["outputs"]) != len(right):
        return f"{len(answer['outputs'])} outputs, not {len(right)}"
    # The rounding of the inputs bounds the accuracy of a result. Integers that
    # become floats become f32.
    dtypes = [capture.TORCH_DTYPES[meta.dtype] for meta in drawn.call.inputs]
    loosest = max(
        [_TOLERANCE.get(dtype, _TOLERANCE[torch.float32]) for dtype in dtypes],
        default=0,
    )
    for o, (text, tensor) in enumerate(zip(answer["outputs"], right, strict=True)):
        if any(f".{tie}." in f"{drawn.call.op}." for tie in _TIES) and (
            tensor.dtype == torch.int64 and o == len(right) - 1
        ):
            continue
        if o in _UNDEFINED.get(drawn.call.op, ()):
            continue
        meta = capture.meta_of(tensor)
        try:
            found = from_hex(text, meta)
        except (RuntimeError, ValueError) as error:
            return f"output {o}: {error}"
        why = apart(found, tensor, loosest)
        if why:
            return f"output {o}: {why}"
    return None


def is_undefined(name):
    base = name.split(".")[1]
    return base.removeprefix("new_").startswith("empty")


def wraps(call, inputs):
    """Whether an absolute value is none in the dtype: -128 of i8."""
    return call.op.split(".")[1].rstrip("_") in ("gcd", "lcm") and any(
        tensor.numel()
        and not tensor.dtype.is_floating_point
        and tensor.dtype != torch.bool
        and int(tensor.min()) == torch.iinfo(tensor.dtype).min
        and torch.iinfo(tensor.dtype).min < 0
        for tensor in inputs
    )


def misread(call):
    """Returns whether PyTorch's kernel misuses its `out`. It casts floats to u8
    before it tests them, so that 0.3 counts as false. It does not write a loss
    or gradient if `out` or `grad_input` has another shape."""
    base, overload = call.op.split(".")[1:]
    if base in ("all", "any") and call.arg("out") is not None:
        out = call.inputs[call.arg("out").index]
        return out.dtype == "u8" and call.inputs[0].dtype[0] in "fb" and call.inputs[0].dtype != "bool"
    if (base, overload) == ("binary_cross_entropy", "out"):
        *given, out = (meta.shape for meta in call.inputs)
        return out != torch.broadcast_shapes(*given)
    if (base, overload) == ("binary_cross_entropy_backward", "grad_input"):
        *given, out = (meta.shape for meta in call.inputs)
        return out != torch.broadcast_shapes(*given)
    return False


class Checked(NamedTuple):
    """The outcome for one operator."""

    counts: collections.Counter
    failures: list  # (call, why)


def check_operator(task):
    name, options = task
    counts, failures = collections.Counter(), []
    drawn = [
        one
        for one in draw_calls(name, count=options.calls, seed=options.seed).valid
        if quirk_of(one.call) is None
        and not wraps(one.call, one.inputs)
        and not misread(one.call)
    ]
    questions = [
        {
            "call": capture.batch_line(one.call, (1,), outputs=False),
            "inputs": [to_hex(tensor) for tensor in one.inputs],
        }
        for one in drawn
    ]
    compared = 0
    for one, answer in zip(drawn, ask([options.values], questions), strict=True):
        counts["calls"] += 1
        if "outputs" not in answer:
            error = answer.get("error", {"code": "died", "message": answer.get("died")})
            counts[f"refused {error['code']}"] += 1
            if error["code"] in ("died", "SP1002"):
                failures.append((one.call, str(error)))
            continue
        why = compare(one, answer)
        compared += 1
        if why:
            failures.append((one.call, why))
    counts["compared"] += compared
    counts["operators"] += compared > 0
    return Checked(counts, failures)


def main():
    options = parse_arguments()
    torch.set_num_threads(1)
    start = time.monotonic()
    index, count = options.slice
    names = [
        name
        for name in listed(options.values)
        if known(name) and not is_undefined(name)
    ]
    if options.op:
        names = [name for name in names if any(part in name for part in options.op)]
    names = names[index - 1 :: count]
    counts, failures, none = collections.Counter(), {}, []
    check_operator(("aten.add.Tensor", options))  # what torch sets up at first use
    tasks = [(name, options) for name in names]
    # Some of PyTorch's kernels crash on sampled calls.
    for (name, _), checked, died in run_each(
        check_operator, tasks, processes=1, seconds=_MOST_SECONDS
    ):
        if checked is None:
            counts["ended by PyTorch's kernels"] += 1
            none.append(f"{name} ({died})")
            continue
        counts.update(checked.counts)
        if checked.failures:
            failures[name] = checked.failures
        if not checked.counts["compared"]:
            none.append(name)
    for name, found in failures.items():
        for call, why in found[: options.show]:
            print(f"{in_short(call)}\n    {why}")
        if len(found) > options.show:
            print(f"  and {len(found) - options.show} more of {name}")
    wrong = sum(map(len, failures.values()))
    refused = {k: v for k, v in counts.items() if k.startswith("refused")}
    print(f"not compared: {', '.join(none) if none else 'none'}")
    print(
        f"{counts['operators']} of {len(names)} operators, {counts['compared']} calls "
        f"compared of {counts['calls']} ({refused}) in "
        f"{time.monotonic() - start:.0f} s: {wrong} wrong"
    )
    enough = options.op or counts["operators"] * count >= options.least
    return 0 if not wrong and enough else 1


if __name__ == "__main__":
    sys.exit(main())
