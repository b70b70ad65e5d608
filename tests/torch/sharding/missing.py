"""Finds layouts under which an operator would run unchanged, but that no rule
has.

Tries every layout of the inputs over one mesh dim: the operator runs on each
rank with its own arguments. If the results combine to the unsharded ones, some
strategy should accept those inputs. Local programs and arguments that differ on
the ranks (shapes of views) are beyond this search. A found layout must also
hold for special values: zeros, ties, NaN.
"""

import itertools
import math

import torch

from .capture import TORCH_DTYPES
from .proof import Proof, Wrong

_KINDS = ("sum", "avg", "max", "min")
_MOST_INPUTS = 3
_MESHES = ((2,), (3,))
# Rules must hold for these values as for any other: ties, zeros from nonzero
# partial terms, logarithms of zero or less, slopes below zero.
_NUMBERS = (0.0, -1.0, 1.0, 2.0, -0.5, 0.75)
_NOT_ALL_NUMBERS = (*_NUMBERS, math.nan)
# These kernels do not check that operands fit each other, and write out of
# bounds if they do not.
_TRUSTING = ("attention", "pool", "_norm", "convolution_backward")


def _shards(meta):
    return [f"S({dim})" for dim, size in enumerate(meta.shape) if size > 1]


def _partials(meta):
    if meta.dtype == "bool":
        return ["P(bor)", "P(band)"]
    if meta.dtype in ("c64", "c128"):
        return ["P(sum)", "P(avg)"]
    kinds = [k for k in _KINDS if k != "avg" or meta.dtype[0] in "fb"]
    return [f"P({kind})" for kind in kinds]


def _choices(meta):
    return ["R", *_shards(meta), *_partials(meta)]


def _results(proof, mesh, inputs):
    """Returns each rank's results from its part of the inputs, or None."""
    layouts = [(entry,) for entry in inputs]
    ranks = range(mesh[0])
    tensors = [
        [proof.shard(i, layout, mesh, rank) for i, layout in enumerate(layouts)]
        for rank in ranks
    ]
    try:
        return [proof.runner.alone(tensors[rank]) for rank in ranks]
    except (RuntimeError, IndexError, ValueError):
        return None


def _makes_whole(proof, mesh, inputs):
    """Per output the first layout that fits the local results, or None."""
    results = _results(proof, mesh, inputs)
    if results is None:
        return None
    outputs = []
    for o, meta in enumerate(proof.call.outputs):
        for entry in _choices(meta):
            try:
                proof.check_output(o, (entry,), mesh, [by[o] for by in results])
            except Wrong:
                continue
            outputs.append(entry)
            break
        else:
            return None
    return tuple(outputs)


def _for_nothing(metas, inputs):
    """Yields the layouts that `inputs` satisfy at no cost. A replicated tensor
    is also an average and an extremum of equal terms; a tensor without elements
    has any layout."""
    for kind in ("P(avg)", "P(max)", "P(min)"):
        places = [
            ("R", text, *_partials(meta))
            if 0 in meta.shape
            else (text, kind)
            if text == "R"
            else (text,)
            for meta, text in zip(metas, inputs, strict=True)
        ]
        yield from itertools.product(*places)


def _changed(inputs):
    """Returns floats near the given ones, none of them zero, huge or NaN. A
    layout that holds only for such values, or only near them, is not a rule."""

    def change(x):
        if not x.is_floating_point():
            return x
        ramp = torch.linspace(0.75, 1, max(x.numel(), 1), dtype=torch.float64)
        ramp = ramp[: x.numel()].reshape(x.shape).to(x.dtype)
        ordinary = (x.abs() > 1e-2) & (x.abs() < 1e2)
        return torch.where(ordinary, x * ramp, ramp / 2)

    return None if inputs is None else [change(x) for x in inputs]


def _special_values(call, inputs):
    """Lists of inputs whose floats are special, in their own dtypes: two operands
    have each pair of values somewhere, and everywhere."""
    for values, step in itertools.product((_NUMBERS, _NOT_ALL_NUMBERS), (1, 0)):
        for first, second in itertools.product(range(len(values)), repeat=2):
            begins = itertools.cycle((first, second))
            yield [
                _repeated(values, x, begin, step, TORCH_DTYPES[meta.dtype])
                for x, meta, begin in zip(inputs, call.inputs, begins, strict=False)
            ]


def _repeated(values, x, begin, step, dtype):
    if not x.is_floating_point():
        return x
    places = (torch.arange(x.numel()) * step + begin) % len(values)
    return torch.tensor(values, dtype=dtype)[places].reshape(x.shape)


class _Specials:
    """Yields proofs of a call with special values, created on demand."""

    def __init__(self, call, seed, inputs):
        self._to_come = (
            made
            for trial, values in enumerate(_special_values(call, inputs))
            if (made := _proof_or_none(call, seed + trial, values)) is not None
        )
        self._made = []

    def __iter__(self):
        yield from self._made
        for proof in self._to_come:
            self._made.append(proof)
            yield proof

    def disprove(self, inputs, outputs):
        """Returns whether a finite result differs from the combined results of
        the ranks."""
        for proof in self:
            results = _results(proof, _MESHES[0], inputs)
            if results is None:
                return True
            try:
                for o, entry in enumerate(outputs):
                    held = [by_rank[o] for by_rank in results]
                    proof.check_output(
                        o, (entry,), _MESHES[0], held, finite_only=True
                    )
            except Wrong:
                return True
        return False


def _proof_or_none(call, seed, inputs):
    try:
        return Proof(call, seed, inputs)
    except (Wrong, RuntimeError, IndexError, ValueError):
        return None  # not a call for such values


def find_missing(call, strategies, seed, *, inputs=None, worth=lambda inputs: True):
    """[(inputs, outputs)] that work on every mesh tried and are in no strategy.

    `strategies` are those of a mesh of one dim. Values of the operands are drawn
    where none are given; layouts that are not worth it are not tried.
    """
    known = {
        tuple(layout[0] for layout in strategy["inputs"]) for strategy in strategies
    }
    if len(call.inputs) > _MOST_INPUTS or not call.inputs or not call.outputs:
        return []
    if any(part in call.op for part in _TRUSTING):
        return []
    try:
        proof = Proof(call, seed, inputs)
        again = Proof(call, seed + 1, _changed(inputs))
    except Wrong:  # what it returns is not what its call says, or depends on values
        return []
    except RuntimeError:  # a view of more than the changed tensors hold
        return []
    # An operand that is written in place has the layout of the result, by its
    # own rule.
    if proof.draw or proof.runner.writes:
        return []
    special = _Specials(call, seed, proof.inputs)
    found = []
    for laid_out in itertools.product(*map(_choices, call.inputs)):
        if not known.isdisjoint(_for_nothing(call.inputs, laid_out)):
            continue
        if not worth(laid_out):
            continue
        outputs = _makes_whole(proof, _MESHES[0], laid_out)
        if outputs is None:
            continue
        # Once by luck is not a rule.
        is_again = all(
            _makes_whole(again, mesh, laid_out) == outputs for mesh in _MESHES
        )
        if is_again and not special.disprove(laid_out, outputs):
            found.append((laid_out, outputs))
    return found
