"""Splits a tensor into terms that a reduction makes whole again, and reduces.

Terms are asymmetric: no two ranks hold alike, signs differ, and where a single
term decides (a maximum, a bit) it is another rank's at each element. Sums of
integers of one byte wrap round, as they may; maxima stay in range.
"""

import functools
import math

import torch

_AS_OR = ("sum", "max", "bor", "avg")  # what a sum of truth values means
_AS_AND = ("product", "min", "band")


def reduces_to(kinds):
    """Returns the one reduction that equals partials over several mesh dims."""
    distinct = set(kinds)
    if distinct <= {"sum", "avg"}:
        return "sum"
    if len(distinct) != 1:
        raise ValueError(f"partials do not mix: {sorted(distinct)}")
    return distinct.pop()


def _divisor(kinds, sizes):
    """Averages are sums divided at the end."""
    return math.prod(
        size for kind, size in zip(kinds, sizes, strict=True) if kind == "avg"
    )


def _decider(value, count, generator):
    """Per element the term that decides it, as a mask [count, *shape]."""
    which = torch.randint(count, value.shape, generator=generator)
    terms = torch.arange(count).view([count] + [1] * value.dim())
    return which.unsqueeze(0) == terms


def _random_like(value, count, generator, exact):
    shape = (count, *value.shape)
    if value.dtype in (torch.uint8, torch.int8):
        return torch.randint(0, 256, shape, generator=generator).to(value.dtype)
    if value.is_complex():
        parts = torch.view_as_real(value)
        drawn = _random_like(parts, count, generator, exact)
        return torch.view_as_complex(drawn)
    if not value.is_floating_point():
        return torch.randint(-6, 7, shape, generator=generator).to(value.dtype)
    if exact:
        return (torch.randint(-6, 7, shape, generator=generator) / 4).to(value.dtype)
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
    drawn *= torch.arange(1, count + 1).view([count] + [1] * value.dim())
    return drawn.to(value.dtype)


def _beside(value, op, count, generator, exact):
    """Terms that a maximum (minimum) equal to `value` leaves undecided."""
    if value.is_floating_point():
        away = _random_like(value, count, generator, exact).abs()
        beside = value - away if op == "max" else value + away
        # A NaN decides the result, no matter which terms it meets.
        any_sign = _random_like(value, count, generator, exact)
        return torch.where(value.isnan(), any_sign, beside)
    limits = torch.iinfo(value.dtype)
    away = torch.randint(0, 7, (count, *value.shape), generator=generator)
    wide = value.long()
    away = wide - away if op == "max" else wide + away
    return away.clamp(limits.min, limits.max).to(value.dtype)


def _split_product(value, count, generator, exact):
    shape = (count, *value.shape)
    if value.is_floating_point():
        if exact:
            # A division by powers of two does not round.
            powers = torch.randint(-1, 2, shape, generator=generator).double()
            signs = torch.randint(2, shape, generator=generator) * 2 - 1
            terms = (torch.exp2(powers) * signs).to(value.dtype)
        else:
            terms = _random_like(value, count, generator, exact).abs() + 0.5
        terms[-1] = value / terms[:-1].prod(0)
        return terms
    # Every other factor is a sign; signs cancel out in pairs.
    signs = torch.randint(2, shape, generator=generator)
    signs = (signs * 2 - 1).to(value.dtype)
    decider = _decider(value, count, generator)
    negative = signs.prod(0, dtype=value.dtype)
    return torch.where(decider, value * signs * negative, signs)


def _split_bits(value, op, count, generator):
    decider = _decider(value, count, generator)
    if value.dtype == torch.bool:
        noise = torch.rand((count, *value.shape), generator=generator) < 0.5
    else:
        noise = torch.randint(-8, 8, (count, *value.shape), generator=generator)
        noise = noise.to(value.dtype)
    if op == "bor":
        return torch.where(decider, value, value & noise)
    if op == "band":
        return torch.where(decider, value, value | noise)
    terms = noise.clone()
    terms[-1] = functools.reduce(torch.bitwise_xor, noise[:-1], value)
    return terms


def split(value, kinds, sizes, generator, *, exact=False):
    """Returns the terms by rank of the partial mesh dims, with the last dim
    fastest.

    `exact`: terms are small multiples of 1/4, so that short floats add up.
    """
    count = math.prod(sizes)
    op = reduces_to(kinds)
    if value.dtype == torch.bool:
        op = "bor" if op in _AS_OR else "band" if op in _AS_AND else op
    if op in ("bor", "band", "bxor"):
        terms = _split_bits(value, op, count, generator)
    elif op == "sum":
        terms = _random_like(value, count, generator, exact)
        rest = value * _divisor(kinds, sizes)
        terms[-1] = rest - terms[:-1].sum(0, dtype=value.dtype)
    elif op in ("max", "min"):
        beside = _beside(value, op, count, generator, exact)
        terms = torch.where(_decider(value, count, generator), value, beside)
    elif op == "product":
        terms = _split_product(value, count, generator, exact)
    else:
        raise ValueError(f"unknown reduction {op}")
    return list(terms)


def reduce(terms, kinds, sizes):
    """Returns the value that the terms reduce to."""
    op = reduces_to(kinds)
    stacked = torch.stack(terms)
    if stacked.dtype == torch.bool:
        op = "bor" if op in _AS_OR else "band" if op in _AS_AND else op
    pairwise = {
        "band": torch.bitwise_and,
        "bor": torch.bitwise_or,
        "bxor": torch.bitwise_xor,
    }
    if op in pairwise:
        return functools.reduce(pairwise[op], terms)
    if op == "max":
        return stacked.amax(0)
    if op == "min":
        return stacked.amin(0)
    if op == "product":
        return stacked.prod(0, dtype=stacked.dtype)
    total = stacked.sum(0, dtype=stacked.dtype)
    divisor = _divisor(kinds, sizes)
    return total if divisor == 1 else (total / divisor).to(stacked.dtype)
