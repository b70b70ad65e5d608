"""Operator definitions record which kernels of PyTorch depend on the memory
order of operands.

A rank's part of a tensor may have another memory order than the full tensor.
Each operator runs on contiguous operands, and on the same values with one
operand's dims in the opposite order in memory. The results must be equal unless
the operator's definition is `in_order()` or `in_dense_rows()`. $SHARDPROP_BIN
is the command line, and $SHARDPROP_SLICE=K/M takes every M-th operator.
"""

import json
import os
import subprocess
import sys
import unittest
import warnings

import torch

from sharding.capture import TORCH_DTYPES, torch_op
from sharding.drawn_calls import draw_calls
from sharding.kernel_quirks import quirk_of
from sharding.local_run import Runner
from sharding.proof import undefined_results

BIN = os.environ.get("SHARDPROP_BIN", "build/release/tools/shardprop")
SLICE, SLICES = map(int, os.environ.get("SHARDPROP_SLICE", "1/1").split("/"))
CALLS = 30 if os.environ.get("SHARDPROP_FULL") == "1" else 6
SAID = (".in_order()", ".in_dense_rows()")
# Operators that refuse operands, or differ, for another reason.
ELSE = {
    "aten.view.default": "programs have reshape in its place",
    "aten._unsafe_view.default": "programs have reshape in its place",
    "aten.view_as.default": "programs have reshape_as in its place",
    "aten._grouped_mm.default": "takes rows or columns of 16 bytes, others it refuses",
}


def catalogue():
    """The rule of each operator whose kernel sees the memory of its operands."""
    done = subprocess.run([BIN, "ops", "--format", "json"], capture_output=True, check=True)  # fmt: skip
    rules = {}
    for row in json.loads(done.stdout):
        op = row["op"]
        namespace, base, _ = op.split(".")
        if namespace != "aten" or base.startswith("_foreach") or op in ELSE:
            continue
        # Pointwise kernels walk all operands by their strides.
        if row["family"] != "pointwise" and not torch_op(op)._schema.is_mutable:
            rules[op] = row["rule"]
    return rules


def turned(tensor):
    """The same values with the order of dims in memory reversed."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def alike(some, others, undefined):
    def numbers(tensor):
        return (
            torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        )

    return len(some) == len(others) and all(
        one.shape == other.shape
        and torch.allclose(
            numbers(one).double(),
            numbers(other).double(),
            rtol=1e-2,
            atol=1e-2,
            equal_nan=True,
        )
        for index, (one, other) in enumerate(zip(some, others, strict=True))
        if index not in undefined
    )


def depends(one):
    """Returns the operand whose order changes the results; None if there is no
    such operand."""
    runner = Runner(one.call, None, TORCH_DTYPES.__getitem__)
    tensors = [tensor.contiguous() for tensor in one.inputs]
    try:
        wanted = runner.alone(tensors)
    except Exception:
        return None
    undefined = undefined_results(one.call, wanted)
    for index, tensor in enumerate(tensors):
        other = turned(tensor)
        if other.is_contiguous():
            continue
        try:
            results = runner.alone([*tensors[:index], other, *tensors[index + 1 :]])
        except RuntimeError:
            return index
        if not alike(wanted, results, undefined):
            return index
    return None


class Order(unittest.TestCase):
    def test_rows_say_which_kernels_depend_on_it(self):
        rules = catalogue()
        ran, said, wrong = 0, set(), []
        for op in sorted(rules)[SLICE - 1 :: SLICES]:
            for one in draw_calls(op, count=CALLS, seed=11).valid:
                # Below zero losses differ by how the loop is unrolled.
                width = one.call.arg("delta", one.call.arg("beta"))
                below = "loss_backward" in op and width is not None and width < 0
                if quirk_of(one.call) or below:
                    continue
                ran += 1
                index = depends(one)
                if index is None:
                    continue
                if any(word in rules[op] for word in SAID):
                    said.add(op)
                else:
                    wrong.append(f"{op}, operand {index}: {one.call}")
        print(f"{ran} calls; by order of their operands differ {sorted(said)}")
        print(*wrong, sep="\n")
        self.assertEqual(len(wrong), 0)
        if SLICES == 1:
            self.assertGreater(len(said), 15)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main(argv=sys.argv[:1])
