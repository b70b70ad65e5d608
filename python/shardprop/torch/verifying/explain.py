"""An Explainer says how a wrong value differs from the right one: the layout in which it
would be right, missing sums, factors, and values that it contains too often.
"""

import dataclasses
import math
from typing import Any, Optional

import torch

from .fits import FEW, fit, fit_in_groups
from .keys import AS_PARAMETER, FORWARD, Key
from .layouts import Fit, Grid, number, words
from .multiples import dims_of_factor, multiple, row_multiple, without_noise
from .padding import uses_padding
from .ranks import Ranks
from .report import Value
from .rows import reordered
from .stated import text_of
from .seen import usable
from .watch import Recording

# Values of the reference that may be contained in a wrong value by mistake.
_MOST_SUSPECTS = 60
# Later wrong values mostly follow from the first ones.
_MOST_EXPLAINED = 8


class Explainer:
    """An Explainer explains the wrong values of one comparison, in program order."""

    def __init__(self, reference: Recording, grid: Grid) -> None:
        self._reference, self._grid = reference, grid
        self._explained = 0

    def explain(
        self,
        value: Value,
        order: float,
        ranks: Ranks,
        found: Optional[Fit],
        stated: Any,
        terms: "list[Value]",
        rows: Optional[Value],
    ) -> None:
        """Adds layout, factor and notes to a wrong value.

        `order` is its place in the program. `found` is the layout that fits, `stated`
        that of its DTensor. `terms` are the values before it of which the ranks hold
        terms, and `rows` is the value before it if they hold rows of it.
        """
        notes = value.notes
        grid = self._grid
        if stated is not None:
            notes.append(f"The DTensor states {text_of(stated)}.")
        hidden = [r for r, v in ranks.values.items() if bool(torch.isnan(v).any())]
        if hidden and not bool(torch.isnan(ranks.reference).any()):
            notes.append(
                f"On {_rank_list(hidden)} it has elements that are NaN, as the result of "
                "an asynchronous collective has before the wait."
            )
        if found is None:
            found = fit(ranks, any_factor=True)
        if found is not None:
            factor = without_noise(found.factor, ranks)
            found = dataclasses.replace(found, factor=factor)
        padding = found.padding if found is not None else None
        if padding and value.kind == "gradient" and uses_padding(ranks, padding):
            notes.append("The padding has a gradient: it is not masked.")
        expected = Fit(value.expected) if value.expected else None
        own = ""
        if found is not None and found.is_partial and abs(found.factor - 1) > 1e-6:
            # Multiples of one value add up to a multiple, too.
            own = self._multiples(ranks)
        if own:
            notes.append(own)
        elif found is not None:
            value.layout, value.factor = found.placements, found.factor
            notes.append(f"Found: {words(found, grid)} ({found.text}).")
            if expected is not None:
                source = "as stated"
                if value.kind in AS_PARAMETER:
                    source = "as the parameter"
                notes.append(
                    f"Expected: {words(expected, grid)} ({expected.text}), {source}."
                )
            notes += self._remedy(found, expected, value.kind)
        else:
            value.error, text = self._nearest(ranks)
            notes.append(text)
            if value.kind == "parameter":
                notes.append(
                    "The reference is build() without parallelize(), which must not "
                    "initialize parameters anew."
                )
            self._explained += 1
            if self._explained <= _MOST_EXPLAINED:
                notes += (
                    self._in_groups(ranks)
                    or self._in_other_order(ranks)
                    or self._contained(value, order, ranks)
                    or self._multiple_without_bias(value, ranks)
                )
        if terms and (value.kind in FORWARD or self._explained <= 1):
            notes.append(self._after_terms(value, terms))
        elif rows is not None and value.kind in FORWARD:
            notes.append(
                f"The value before it, {rows.title}, holds rows in another "
                f"order ({','.join(rows.layout)})."
            )

    def _after_terms(self, value: Value, terms: "list[Value]") -> str:
        """Returns a sentence on the values before a wrong one, which are terms."""
        last = terms[-1]
        dims = " and ".join(
            name for p, name in zip(last.layout, self._grid.names) if p.startswith("P")
        )
        layout = ",".join(last.layout)
        chain = [each.title for each in terms if each.layout == last.layout][-4:]
        names = " and ".join(filter(None, [", ".join(chain[:-1]), chain[-1]]))
        verb = "is a term" if len(chain) == 1 else "are terms"
        if value.kind not in FORWARD:
            return (
                f"At the end of the forward pass, {names} {verb} on each rank "
                f"({layout}): a sum over {dims} is missing if the loss needs the whole."
            )
        noun = "value" if len(chain) == 1 else "values"
        between = "between them" if len(chain) == 1 else "after one of them"
        return (
            f"The {noun} before it, {names}, {verb} on each rank ({layout}): a sum over "
            f"{dims} is missing {between}."
        )

    def _remedy(self, found: Fit, expected: Optional[Fit], kind: str) -> "list[str]":
        grid = self._grid
        result = []
        missing = []
        for index, p in enumerate(found.placements):
            if p.startswith("P") and (
                expected is None or not expected.placements[index].startswith("P")
            ):
                missing.append((p[2:-1], grid.names[index]))
        for reduction, name in missing:
            word = "mean" if reduction == "avg" else "sum"
            result.append(f"A {word} over {name} is missing.")
        if abs(found.factor - 1) > 1e-6:
            dims = dims_of_factor(self._grid, found.factor)
            text = f"The factor is {number(found.factor)}"
            if dims:
                text += f": the size of {dims}"
            result.append(text + ".")
        if expected is not None and found.rows is not None:
            result.append("The ranks hold rows in another order than the parameter.")
        return result

    def _nearest(self, ranks: Ranks) -> "tuple[float, str]":
        """Returns the smallest error over all layouts, and a sentence on it."""
        best: "tuple[float, Any, Any]" = (math.inf, None, None)
        for placements in ranks.options():
            parts = ranks.parts(placements)
            combined = ranks.combined(placements)
            if parts is None or not combined:
                continue
            errors = {
                rank: float((combined[rank] - expected).abs().max())
                if expected.numel() else 0.0
                for rank, expected in parts.items()
            }
            worst = max(errors.values())
            if worst < best[0]:
                best = (worst, placements, errors)
        worst, placements, errors = best
        if placements is None:
            return math.inf, "No layout makes it right."
        bad = [
            r
            for r, expected in ranks.parts(placements).items()
            if not ranks.agrees(placements, {r: expected})
        ]
        text = (
            f"No layout makes it right. The nearest is {','.join(placements)}, with an "
            f"error of {worst:.3g} (the bound of float noise is {ranks.bound:.2g})"
        )
        own = self._own_factors(ranks, placements)
        if own:
            return worst, own
        if 0 < len(bad) < len(errors):
            text += f"; only {_rank_list(bad)} {'is' if len(bad) == 1 else 'are'} wrong"
        return worst, text + "."

    def _multiples(self, ranks: Ranks) -> str:
        """Returns a sentence if each rank holds its own multiple of a part."""
        texts = (self._own_factors(ranks, placements) for placements in ranks.options())
        return next(filter(None, texts), "")

    @staticmethod
    def _own_factors(ranks: Ranks, placements) -> str:
        """Returns a sentence on the factors of the ranks if each has its own."""
        parts = ranks.parts(placements)
        if any(p.startswith("P") for p in placements) or parts is None:
            return ""
        factors = {}
        for rank, expected in parts.items():
            if expected.numel() < FEW:
                return ""
            factors[rank] = ranks.factor(placements, {rank: expected})
            if not ranks.agrees(placements, {rank: expected}, factors[rank]):
                return ""
        named = list(factors.items())[:8]
        listed = ", ".join(f"rank {rank} {number(factor)}" for rank, factor in named)
        return (
            f"In the layout {','.join(placements)} each rank holds another multiple of "
            f"the right value: {listed}."
        )

    def _contained(self, value: Value, order: float, ranks: Ranks) -> "list[str]":
        """Returns sentences on values that a wrong value contains too often.

        The difference to the right value is a multiple of a parameter of the same
        module, or of an earlier value.
        """
        name = value.name
        inside = f"{name}." if name else ""
        suspects: "list[tuple[Key, torch.Tensor]]" = []
        parameters: "list[tuple[Key, torch.Tensor]]" = []
        for key, calls in self._reference.values.items():
            seen = usable(calls)
            if not seen:
                continue
            if key.kind == "parameter" and f"{key.name}.".startswith(inside):
                parameters.append((key, seen[0].tensor))
            elif key.kind in FORWARD and seen[0].order < order:
                own = (value.kind, name, value.path)
                if (key.kind, key.name, key.path) != own:
                    suspects.append((key, seen[-1].tensor))
        suspects = suspects[-_MOST_SUSPECTS:] + parameters[:_MOST_SUSPECTS]
        wide = ranks.reference.dtype
        for placements in ranks.options():
            parts = ranks.parts(placements)
            combined = ranks.combined(placements)
            if parts is None or not combined:
                continue
            rank = next(iter(parts))
            difference = combined[rank] - parts[rank]
            for key, tensor in parameters:
                times = row_multiple(
                    self._grid, difference, tensor.to(wide), ranks.bound
                )
                if times is not None:
                    return [
                        f"In the layout {','.join(placements)} the value is right "
                        f"except for rows of {key.text()}, which it contains "
                        f"{number(1 + times)} times."
                    ]
            for key, tensor in suspects:
                times = multiple(difference, tensor.to(wide), ranks.bound)
                if times is None or abs(times) < 0.1:
                    continue
                notes = [
                    f"In the layout {','.join(placements)} the value is right except "
                    f"for {key.text()}, which it contains {number(1 + times)} times."
                ]
                dims = [
                    name
                    for p, name in zip(placements, self._grid.names)
                    if p.startswith("P")
                ]
                if dims:
                    notes.append(
                        f"The ranks hold terms: a sum over {' and '.join(dims)} is "
                        "missing, or comes after what is added once on each rank."
                    )
                return notes
        return []

    @staticmethod
    def _in_groups(ranks: Ranks) -> "list[str]":
        """Returns sentences on a value that is right over groups within a mesh dim."""
        in_groups = fit_in_groups(ranks, any_factor=True)
        if in_groups is None:
            return []
        found, grid = in_groups
        notes = [f"On the mesh {grid.text}, {words(found, grid)} ({found.text})."]
        for p, name in zip(found.placements, grid.names):
            if p.startswith("P"):
                notes.append(f"A sum over {name} is missing.")
        return notes

    @staticmethod
    def _in_other_order(ranks: Ranks) -> "list[str]":
        found = reordered(ranks)
        if found is None:
            return []
        placements, dim, rows = found
        return [
            f"In the layout {','.join(placements)} the rows of dim {dim} are in another "
            f"order: {_ranges(rows)}."
        ]

    def _multiple_without_bias(self, value: Value, ranks: Ranks) -> "list[str]":
        """Returns a sentence if the value is a multiple before a bias is added."""
        for key, calls in self._reference.values.items():
            seen = usable(calls)
            is_own = key.kind == "parameter" and key.name.rpartition(".")[0] == value.name
            if not is_own or not seen or seen[0].tensor.dim() != 1:
                continue
            bias = seen[0].tensor.to(ranks.reference.dtype)
            for placements in ranks.options():
                parts = ranks.parts(placements)
                combined = ranks.combined(placements)
                if parts is None or any(
                    part.shape[-1:] != bias.shape for part in parts.values()
                ):
                    continue
                rank, part = next(iter(parts.items()))
                times = multiple(combined[rank] - bias, part - bias, ranks.bound)
                if times is None or abs(times - 1) < 1e-3:
                    continue
                dims = dims_of_factor(self._grid, times)
                return [
                    f"In the layout {','.join(placements)} it is {number(times)} times "
                    f"the value, except for {key.text()}"
                    + (f": {number(times)} is the size of {dims}." if dims else ".")
                ]
        return []

def _ranges(rows: "tuple[int, ...]") -> str:
    """Returns "4-7, 0-3" for consecutive rows."""
    ranges: "list[list[int]]" = []
    for row in rows:
        if ranges and row == ranges[-1][1] + 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    texts = [f"{a}-{b}" if a < b else f"{a}" for a, b in ranges[:8]]
    return ", ".join(texts) + (" ..." if len(ranges) > 8 else "")


def _rank_list(ranks: "list[int]") -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks[:8]))
