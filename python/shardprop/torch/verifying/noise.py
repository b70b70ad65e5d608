"""Noise bounds the rounding error of each value of the reference.

The bound of an element x of a value v is

    4 max(|x|, |v|) (u sqrt(n) + a sqrt(n k))  +  16 |v - v64|

where u is the unit roundoff of the coarsest dtype so far, a the unit roundoff of its
accumulations, k the longest reduction so far, n the number of operators with a
reduction so far, and v64 the same value of a reference in f64. The first part is the
probabilistic bound of Higham and Mary with constant 4. The second part covers values
that cancel, such as the gradient of the bias of attention's keys.

|v| and |v - v64| are the largest of their elements, without outliers: a masked score of
-1e9 does not hide errors of the other scores.

An updated parameter p is rounded only when it is written, and its change follows from
the gradient g. Its bound is

    (2 w + 1) u |x|  +  c (4 (u sqrt(n) + a sqrt(n k)) + 2 min(1, b / |g|))  +  16 |p - p64|

where w is the number of writes, c the largest change, and b the bound of the gradient:
AdamW moves a parameter by about the sign of its gradient, which may be noise. Wrong
updates are found although they are small against the parameter.

Each write rounds to a multiple of the smallest number s of a dtype. A value therefore
has the bound 4 s sqrt(n) at least. An optimizer's state e is known up to 2 w s / |e|, and
the changes that follow from it, too. Elements with a state that underflows, such as the
squares of f16 gradients in AdamW, have no bound.

Errors that are small against the bounds are found if all elements have them: the k with
the least squares of v' - k v must be 1 up to

    4 (u + |k64 - 1|)  +  |bounds * v| / |v|^2

where k64 is the same of v and v64. Errors of single elements are independent, so they
hardly change k. This is tested for bf16 and f16, whose bounds are above 1 %.

The ranks may compute in a coarser dtype than the reference, as with mixed precision of
FSDP. The errors of the reference are then multiplied by the ratio of the roundoffs.
"""

import dataclasses
import math
from typing import Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def unit(dtype: torch.dtype) -> float:
    """Returns the unit roundoff of a dtype."""
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point else (
        torch.finfo(dtype.to_real()).eps / 2
    )


def coarser(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    return b if unit(b) > unit(a) else a


def _accumulates_in(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype.itemsize < 4 else dtype


@dataclasses.dataclass(frozen=True)
class Work:
    """Work counts the reductions of a run so far."""

    #: `reductions` counts operators with a reduction; `longest` is the longest one.
    reductions: int = 0
    longest: int = 1
    #: `coarsest` is the dtype with the largest roundoff among all results.
    coarsest: torch.dtype = torch.float64


class Lengths(TorchDispatchMode):
    """Lengths measures the work of a run."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._count, self._longest, self._coarsest = 0, 1, torch.float64

    @property
    def work(self) -> Work:
        return Work(self._count, self._longest, self._coarsest)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        length = self._length(str(func), args, result)
        if length > 1:
            self._count += 1
            self._longest = max(self._longest, length)
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, torch.Tensor) and _is_float(made.dtype):
                self._coarsest = coarser(self._coarsest, made.dtype)
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


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _numbers(value: torch.Tensor) -> torch.Tensor:
    """Returns the value in f64; elements that are not finite become 0."""
    value = value.detach()
    wide = value.to(torch.complex128 if value.is_complex() else torch.float64)
    return torch.where(torch.isfinite(wide), wide, 0.0)


def computable(value: torch.Tensor) -> torch.Tensor:
    """Returns the value in a dtype that has arithmetic: f32 instead of f8."""
    value = value.detach()
    return value.float() if _is_float(value.dtype) and value.itemsize < 2 else value


def scale_of(value: torch.Tensor) -> float:
    """Returns the largest size of the elements without outliers.

    An outlier is _OUTLIER times as large as the median of the elements that are not 0.
    """
    sizes = computable(value).abs().flatten()
    sizes = sizes[torch.isfinite(sizes) & (sizes > 0)].double()
    if sizes.numel() == 0:
        return 0.0
    largest = float(sizes.max())
    if sizes.numel() < _MANY:
        return largest
    return float(sizes[sizes <= _OUTLIER * sizes.median()].max())


# Gradients of rare words are this much smaller than others, but no outliers.
_OUTLIER = 1e4
# Few elements have no outliers.
_MANY = 16

# The ranks may have this many times the error of the reference.
_ERRORS = 16
# A factor of all elements may be this many roundoffs. A scale that is rounded, such as
# that of clipping, gives one.
_FACTORS = 4
# Values with smaller bounds are not searched for a common factor.
_COARSE = 1e-2
# Without an error of the reference, its bound is this many times as wide.
_UNKNOWN = 16


@dataclasses.dataclass
class Error:
    """An Error is the largest difference of a value to the same value in f64."""

    #: `usual` is that of elements up to scale_of(value), `largest` that of all.
    usual: float
    largest: float
    #: The value is about this multiple of the f64 value, less 1.
    factor: float = 0.0


def error_of(
    value: torch.Tensor,
    wide: torch.Tensor,
    known: "Optional[torch.Tensor]" = None,
) -> Error:
    """Returns the error of a value. `known` are errors that do not count: an updated
    parameter has its own bound for them."""
    value, wide = computable(value), computable(wide)
    difference = (wide - value).abs()
    if known is not None:
        difference = (difference - known).clamp(min=0)
    finite = torch.isfinite(difference)
    usual = difference[finite & (value.abs() <= scale_of(value))]
    every = difference[finite]
    return Error(
        float(usual.max()) if usual.numel() else 0.0,
        float(every.max()) if every.numel() else 0.0,
        _factor_of(value, wide),
    )


def _factor_of(value: torch.Tensor, wide: torch.Tensor) -> float:
    """Returns |k - 1| for the k with the least squares of value - k * wide."""
    value, wide = _numbers(value), _numbers(wide)
    below = float((wide * wide.conj()).sum().real)
    above = float((value * wide.conj()).sum().real)
    return abs(above / below - 1) if below > 0 else 0.0


@dataclasses.dataclass
class Noise:
    """Noise bounds the rounding errors of a value."""

    #: The bound of each element, of the shape of the value.
    bounds: torch.Tensor
    #: `typical` is the bound of most elements; outliers have larger ones.
    typical: float
    #: All elements together may be this multiple of the value, less 1, apart from errors
    #: that differ from element to element.
    factor: float = math.inf


def relative(coarsest: torch.dtype, work: Work) -> float:
    """Returns the bound of the error of a value, relative to its size."""
    count = work.reductions + 1
    return 4 * (
        unit(coarsest) * math.sqrt(count)
        + unit(_accumulates_in(coarsest)) * math.sqrt(count * work.longest)
    )


def noise_of(
    value: torch.Tensor, error: Optional[Error], coarsest: torch.dtype, work: Work
) -> Noise:
    """Returns the bounds of the errors of a value; see above.

    `coarsest` is the coarsest dtype of the reference and of the ranks so far, and `error`
    is None if the value is not known in f64.
    """
    size, errors = relative(coarsest, work), _scaled(error, coarsest, work)
    if error is None:
        size *= _UNKNOWN
    scale, sizes = scale_of(value), _numbers(value).abs()
    rest = torch.full_like(sizes, errors.usual)
    rest[sizes > scale] = errors.largest
    least = _LEAST + 4 * smallest(coarsest) * math.sqrt(work.reductions + 1)
    bounds = size * sizes.clamp(min=scale) + rest + least
    factor = math.inf
    if error is not None and size > _COARSE:
        factor = _FACTORS * (unit(coarsest) + errors.factor / _ERRORS)
    return Noise(bounds, size * scale + errors.usual + least, factor)


# Values of an exact bound, such as 0, keep a bound above 0.
_LEAST = 1e-30


def noise_of_integers(value: torch.Tensor, error: Optional[Error]) -> Noise:
    """Returns the bounds of integers, which are exact. If the run in f64 has other ones,
    such as the position of the largest of two equal values, they have no bound."""
    bound = math.inf if error is not None and error.largest > 0 else _LEAST
    return Noise(torch.full_like(value, bound, dtype=torch.float64), bound)


def smallest(dtype: torch.dtype) -> float:
    """Returns the smallest number above 0 of a dtype."""
    real = dtype if dtype.is_floating_point else dtype.to_real()
    return torch.finfo(real).smallest_normal * torch.finfo(real).eps


def _scaled(error: Optional[Error], coarsest: torch.dtype, work: Work) -> Error:
    """Returns the bounds of errors that follow from the error of the reference."""
    if error is None:
        return Error(0.0, 0.0)
    times = _ERRORS * max(1.0, unit(coarsest) / unit(work.coarsest))
    return Error(times * error.usual, times * error.largest, times * error.factor)


@dataclasses.dataclass
class Update:
    """An Update is the change of a parameter by a step."""

    before: torch.Tensor
    #: The gradient and its noise, if the reference has one.
    gradient: Optional[torch.Tensor]
    noise: Optional[Noise]
    #: How often the parameter was written.
    writes: int
    #: The optimizer's states of the parameter, after the step.
    states: "list[torch.Tensor]" = dataclasses.field(default_factory=list)

    def change_of(self, value: torch.Tensor) -> float:
        """Returns the largest change of the parameter that is finite."""
        changes = _numbers(value.detach() - self.before).abs()
        return float(changes.max()) if changes.numel() else 0.0

    def rounding(self, value: torch.Tensor) -> torch.Tensor:
        """Returns the errors of the parameter that its writes and the writes of its
        states cause. They are infinite where a state underflows."""
        own = self.writes * unit(value.dtype) * _numbers(value).abs()
        change = self.change_of(value)
        for state in self.states:
            if state.shape == value.shape:
                least = 2 * self.writes * smallest(state.dtype)
                share = least / _numbers(state).abs().clamp(min=_LEAST)
                own += torch.where(share > 0.5, math.inf, change * share)
        return own


def noise_of_update(
    value: torch.Tensor,
    error: Optional[Error],
    coarsest: torch.dtype,
    work: Work,
    update: Update,
) -> Noise:
    """Returns the bounds of the errors of an updated parameter; see above."""
    if update.before.shape != value.shape:
        return noise_of(value, error, coarsest, work)
    change = update.change_of(value)
    size = relative(coarsest, work) * (1 if error is not None else _UNKNOWN)
    # The ranks and the reference write, and the difference is rounded.
    bounds = 2 * update.rounding(value) + unit(value.dtype) * _numbers(value).abs()
    bounds += _scaled(error, coarsest, work).largest + size * change + _LEAST
    gradient, noise = update.gradient, update.noise
    if gradient is not None and noise is not None and gradient.shape == value.shape:
        sizes = _numbers(gradient).abs()
        largest = float(sizes.max()) if sizes.numel() else 0.0
        # The gradients of the ranks may be larger than this one if all of it is noise.
        most = max(1.0, noise.typical / max(largest, _LEAST))
        share = noise.bounds / sizes.clamp(min=_LEAST)
        bounds += 2 * change * share.clamp(max=most)
    return Noise(bounds, float(bounds.median()) if bounds.numel() else _LEAST)
