"""PyTorch accepts every call of tests/golden/index_spaces.list and returns the
listed results. tests/golden/refused_calls.list names the operators whose call
fails, among the operators that src/ops/proofs.txt does not list yet. No other
call may fail, and an operator whose call passes again must leave that list.
"""

import pathlib
import re
import sys
import unittest

import torch

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_REFUSED = _ROOT / "tests/golden/refused_calls.list"
_PROVEN = {line.split()[0] for line in
           (_ROOT / "src/ops/proofs.txt").read_text().splitlines()
           if line.endswith(" torch")}  # fmt: skip
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import calls  # noqa: E402

# Kernels that the CPU lacks.
import cuda_attention_kernels  # noqa: E402, F401
import cuda_product_kernels  # noqa: E402, F401
from sharding.capture import TORCH_DTYPES, flat_tensors, torch_op  # noqa: E402
from sharding.processes import run_each  # noqa: E402

_STRIDES = re.compile(r"\{[\d,]*\}")
# Kernels that this build of PyTorch lacks, and calls that depend on values.
_NOT_RUN = ("NotImplementedError", "not implemented for", "no kernel", "Could not run", "random_ expects", "_LinAlgError")


def _given(value):
    if isinstance(value, calls.Tensor):
        dtype = TORCH_DTYPES[value.dtype]
        strides = value.strides
        # Indices of what there is, weights, and matrices that are not singular.
        # (i32: rows that were exchanged, counted from 1).
        ones = dtype.is_floating_point or dtype == torch.int32
        fill = torch.ones if ones else torch.zeros
        made = fill(value.shape, dtype=dtype)
        is_square = made.dim() >= 2 and made.shape[-1] == made.shape[-2]
        if is_square and dtype.is_floating_point and strides is None:
            made = made + 2 * torch.eye(made.shape[-1]).to(dtype)
        return made if strides is None else made.as_strided(value.shape, strides)
    if isinstance(value, list):
        return [_given(element) for element in value]
    return TORCH_DTYPES.get(value, value) if isinstance(value, str) else value


def _meta(tensor):
    names = {dtype: name for name, dtype in TORCH_DTYPES.items()}
    shape = ",".join(map(str, tensor.shape))
    return f"{names[tensor.dtype]}[{shape}]"


def _fault(line):
    """Returns the fault in a line; None if it has no fault or cannot be run."""
    call, said = line
    args = [_given(value) for value in call.args]
    if call.op.endswith(".data"):
        args[1] = torch.ones_like(args[1])  # how many sequences have a step
    kwargs = {name: _given(value) for name, value in call.kwargs.items()}
    try:
        results = torch_op(call.op)(*args, **kwargs)
    except Exception as error:  # noqa: BLE001
        why = f"{type(error).__name__}: {error}"
        return None if any(part in why for part in _NOT_RUN) else why
    returned = [_meta(tensor) for tensor in flat_tensors(results)]
    claimed = _STRIDES.sub("", said.split("; ")[0]).split()
    claimed = [c for c in claimed if c not in ("-", "nothing")]
    return None if claimed == returned else f"{claimed}, but it returns {returned}"


class IndexSpaces(unittest.TestCase):
    def test_calls_of_proven_operators(self):
        lines = [line for line in calls.lines() if line[0].op in _PROVEN]
        self.assertGreater(len(lines), 1200)
        for line in lines:
            with self.subTest(line[0].op):
                self.assertIsNone(_fault(line))

    def test_calls_of_other_operators(self):
        lines = [line for line in calls.lines() if line[0].op not in _PROVEN]
        # Some calls crash PyTorch's kernels.
        faults = {
            line[0].op: fault or died
            for line, fault, died in run_each(_fault, lines, processes=2, seconds=60)
            if fault or died
        }
        known = set(_REFUSED.read_text().split())
        new = sorted(set(faults) - known)
        for op in new:
            print(f"{op}: {faults[op].splitlines()[0]}")
        self.assertEqual([], new)
        self.assertEqual(set(), known - set(faults), "they hold: take them out")


if __name__ == "__main__":
    unittest.main()
