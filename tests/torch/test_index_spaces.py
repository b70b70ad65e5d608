"""Every call of tests/golden/index_spaces.list is one that PyTorch takes, and
returns what stands there. Operators that src/ops/proofs.txt does not list yet are
left out: their calls may be refused, and some crash kernels."""

import pathlib
import re
import sys
import unittest

import torch

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROVEN = {line.split()[0] for line in
           (_ROOT / "src/ops/proofs.txt").read_text().splitlines()
           if line and not line.startswith("#")}  # fmt: skip
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import calls  # noqa: E402

import cuda_attention_kernels  # noqa: E402, F401  (kernels that the CPU lacks)
from sharding.capture import TORCH_DTYPES, flat_tensors, torch_op  # noqa: E402

_STRIDES = re.compile(r"\{[\d,]*\}")
# Kernels that this build of PyTorch lacks, and calls that depend on values.
_NOT_RUN = ("NotImplementedError", "not implemented for", "no kernel", "Could not run", "random_ expects")


def _given(value):
    if isinstance(value, calls.Tensor):
        dtype = TORCH_DTYPES[value.dtype]
        strides = value.strides
        made = torch.zeros(value.shape, dtype=dtype)
        return made if strides is None else made.as_strided(value.shape, strides)
    if isinstance(value, list):
        return [_given(element) for element in value]
    return TORCH_DTYPES.get(value, value) if isinstance(value, str) else value


def _meta(tensor):
    names = {dtype: name for name, dtype in TORCH_DTYPES.items()}
    shape = ",".join(map(str, tensor.shape))
    return f"{names[tensor.dtype]}[{shape}]"


class IndexSpaces(unittest.TestCase):
    def test_every_call_is_one(self):
        run = 0
        for call, said in calls.lines():
            if call.op not in _PROVEN:
                continue
            with self.subTest(call.op):
                args = [_given(value) for value in call.args]
                kwargs = {name: _given(value) for name, value in call.kwargs.items()}
                try:
                    results = torch_op(call.op)(*args, **kwargs)
                except Exception as error:  # noqa: BLE001
                    why = f"{type(error).__name__}: {error}"
                    if any(part in why for part in _NOT_RUN):
                        continue
                    raise
                run += 1
                wanted = [_meta(tensor) for tensor in flat_tensors(results)]
                claimed = _STRIDES.sub("", said.split("; ")[0]).split()
                self.assertEqual([c for c in claimed if c not in ("-", "nothing")], wanted)
        print(f"{run} calls run")


if __name__ == "__main__":
    unittest.main()
