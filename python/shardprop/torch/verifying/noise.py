"""Noise bounds the rounding error of each value of the reference.

The bound of a value v is

    4 max|v| (u sqrt(n) + a sqrt(n k))  +  16 max|v - v64|

where u is the unit roundoff of the coarsest dtype so far, a the unit roundoff of its
accumulations, k the longest reduction so far, n the number of operators with a
reduction so far, and v64 the same value of a reference in f64. The first part is the
probabilistic bound of Higham and Mary with constant 4. The second part covers values
that cancel, such as the gradient of the bias of attention's keys.
"""

import math
from typing import Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def unit(dtype: torch.dtype) -> float:
    """Returns the unit roundoff of a dtype."""
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point else (
        torch.finfo(dtype.to_real()).eps / 2
    )


def _accumulates_in(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype.itemsize < 4 else dtype


class Lengths(TorchDispatchMode):
    """Lengths counts the reductions of a run and their longest length."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.count, self.longest = 0, 1

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        length = self._length(str(func), args, result)
        if length > 1:
            self.count += 1
            self.longest = max(self.longest, length)
        return result

    @staticmethod
    def _length(name: str, args, result) -> int:
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if not tensors:
            return 1
        if ".mm." in name or ".bmm." in name:
            return tensors[0].shape[-1]
        if "addmm" in name or "baddbmm" in name:
            return tensors[1].shape[-1]
        if "attention" in name:
            return max(t.shape[-2] for t in tensors if t.dim() > 1)
        if "convolution" in name and len(tensors) > 1:
            return max(1, tensors[1][0].numel())
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        if "softmax" in name or "norm" in name:
            return tensors[0].shape[-1] if tensors[0].dim() else 1
        if isinstance(first, torch.Tensor) and first.numel():
            return max(1, max(t.numel() for t in tensors) // first.numel())
        return 1


def bound(
    value: torch.Tensor,
    error: Optional[float],
    coarsest: torch.dtype,
    reductions: "tuple[int, int]",
) -> float:
    """Returns the bound of the absolute error of each element; see above.

    `error` is the largest difference to the value in f64, or None if that is not known.
    """
    if value.numel() == 0:
        return 0.0
    count, longest = reductions
    largest = float(value.abs().max())
    small = unit(coarsest)
    accumulated = unit(_accumulates_in(coarsest))
    noise = 4 * largest * (
        small * math.sqrt(count + 1) + accumulated * math.sqrt((count + 1) * longest)
    )
    if error is not None:
        noise += 16 * error
    else:
        noise *= 16
    return noise + 1e-30
