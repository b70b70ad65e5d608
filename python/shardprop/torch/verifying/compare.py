"""compare() checks the values of all ranks against the reference, in program order.

| value | accepted layouts |
|---|---|
| parameter, buffer | any with R, S(d), rows(d) |
| input, output | any |
| output gradient | any, with any factor: gradients check the scale of the loss |
| gradient, updated parameter | the layout of the parameter |
| updated buffer, optimizer state | any with R, S(d), rows(d) |
| result | any; a loss may be a term of a mean |
"""

import dataclasses
import math
from typing import Any, Optional

import torch

from .fits import FEW, LARGEST_TABLE, Fit, Grid, Ranks, number, words
from .noise import bound, unit
from .report import Value
from .stated import CannotAssemble, first_stated, full_values, text_of
from .watch import Key, Recording, Seen

_WITHOUT_TERMS = {
    "parameter",
    "buffer",
    "updated buffer",
    "optimizer state",
}
_AS_PARAMETER = {"gradient", "updated parameter"}
_WITHIN = {"input", "output", "output gradient", "value"}
_FORWARD = {"input", "output", "value"}
_FINAL = {
    "gradient",
    "updated parameter",
    "updated buffer",
    "optimizer state",
    "result",
}
# A value of the model is looked for in so many nodes after the last one that was found.
_WINDOW = 40
# Values of the reference that may be contained in a wrong value by mistake.
_MOST_SUSPECTS = 60
# Later wrong values mostly follow from the first ones.
_MOST_EXPLAINED = 8


@dataclasses.dataclass
class _Case:
    """A _Case is one value to compare."""

    key: Key
    call: int
    order: float
    reference: torch.Tensor
    in_f64: Optional[torch.Tensor]
    reductions: "tuple[int, int]"
    seen: "dict[int, Seen]"
    place: str


def _usable(calls: "list[Any]") -> "list[Seen]":
    return [seen for seen in calls if seen is not None]


def _joined(calls: "list[Seen]") -> Optional[Seen]:
    """Returns the values of micro-batches as one: cat over dim 0, or the mean."""
    first = calls[0]
    if any(seen.stated is not None for seen in calls):
        return None
    tensors = [seen.tensor for seen in calls]
    if first.tensor.dim() == 0:
        return Seen(torch.stack(tensors).mean(0), None, first.order, first.place)
    if len({tensor.shape[1:] for tensor in tensors}) > 1:
        return None
    return Seen(torch.cat(tensors), None, first.order, first.place)


class Comparison:
    """A Comparison checks the recordings of the ranks against two references."""

    def __init__(
        self,
        reference: Recording,
        in_f64: Optional[Recording],
        ranks: "list[Recording]",
        grid: Grid,
        stated: "Optional[dict[Key, Fit]]" = None,
    ) -> None:
        """`stated` has the layouts that values must have."""
        self._reference, self._in_f64 = reference, in_f64
        self._ranks, self._grid = ranks, grid
        self._layouts: "dict[str, Fit]" = {}
        self._stated = stated or {}
        self._last_terms: "Optional[Value]" = None
        self._last_rows: "Optional[Value]" = None
        self._coarsest = torch.float64
        self._explained = 0
        self.missing: "list[Key]" = []

    def run(self) -> "list[Value]":
        """Returns all compared values in program order."""
        values = []
        for case in sorted(self._cases(), key=lambda case: case.order):
            value = self._compare(case)
            values.append(value)
            if case.key.kind in _FORWARD and value.status == "right":
                terms = any(p.startswith("P") for p in value.layout)
                self._last_terms = value if terms else None
                rows = any(p.startswith("rows") for p in value.layout)
                self._last_rows = value if rows else None
        values += self._lost_gradients()
        values.sort(key=lambda value: value.order)
        _excuse(values)
        wrong = self._aligned(values)
        return [wrong, *values] if wrong is not None else values

    def _lost_gradients(self) -> "list[Value]":
        """Returns the gradients that no rank has, although a rank has the parameter."""
        lost = []
        for key in self.missing:
            parameter = Key("parameter", key.name)
            if key.kind != "gradient" or not any(
                parameter in recording.values for recording in self._ranks
            ):
                continue
            if any(key in recording.values for recording in self._ranks):
                continue
            seen = _usable(self._reference.values[key])[0]
            complete = self._reference.gradient_order.get(key.name, [seen.order])
            lost.append(Value(
                key.kind, key.name, key.path, 0, "wrong", place=seen.place,
                order=complete[0],
                notes=["No rank has this gradient; the model on one device has it."],
            ))
        return lost

    def _aligned(self, values: "list[Value]") -> "Optional[Value]":
        """Returns the first value of the model that no node of the ranks' programs has,
        if a result is wrong.

        Both programs are read in order. A node has a value if some layout fits it.
        """
        nodes = [
            name
            for name in (self._ranks[0].nodes if self._ranks else ())
            if all(name in recording.nodes for recording in self._ranks)
        ]
        results = [value for value in values if value.kind == "result"]
        if not nodes or all(value.status != "wrong" for value in results):
            return None
        after, last, first = 0, None, None
        for key, calls in self._reference.values.items():
            if key.kind != "value":
                continue
            for index in range(after, min(after + _WINDOW, len(nodes))):
                seen = {r.rank: r.nodes[nodes[index]] for r in self._ranks}
                case = _Case(
                    key, 0, 0.0, calls[0].tensor, None, calls[0].reductions, seen,
                    calls[0].place,
                )
                value = self._compare(case)
                if value.status == "right":
                    after, last, first = index + 1, (value, nodes[index]), None
                    break
            else:
                first = first or (key, calls[0])
        if first is None:
            return None
        key, seen = first
        wrong = Value(key.kind, key.name, key.path, 0, "wrong", place=seen.place)
        wrong.notes.append("No node of the ranks' programs has this value.")
        if last is not None:
            wrong.notes.append(
                f"The last value that they have is {last[0].title}, at node {last[1]}, "
                f"in the layout {','.join(last[0].layout)}."
            )
            if any(p.startswith("P") for p in last[0].layout):
                wrong.notes.append("The ranks hold terms there: a sum may be missing.")
        return wrong

    # Pairs.

    def _cases(self) -> "list[_Case]":
        cases = []
        for key, calls in self._reference.values.items():
            by_rank = {
                recording.rank: _usable(recording.values[key])
                for recording in self._ranks
                if key in recording.values
            }
            by_rank = {rank: seen for rank, seen in by_rank.items() if seen}
            if not by_rank:
                self.missing.append(key)
                continue
            cases += self._paired(key, _usable(calls), by_rank)
        return cases

    def _paired(self, key, calls, by_rank) -> "list[_Case]":
        f64 = []
        if self._in_f64 is not None:
            f64 = _usable(self._in_f64.values.get(key, []))
        if len(f64) != len(calls):
            f64 = [None] * len(calls)
        counts = {len(seen) for seen in by_rank.values()}
        if len(counts) != 1 or counts == {0}:
            self.missing.append(key)
            return []
        count = counts.pop()
        if count % len(calls):
            self.missing.append(key)
            return []
        pieces = count // len(calls)
        cases = []
        for index, seen in enumerate(calls):
            own = {}
            for rank, held in by_rank.items():
                group = held[index * pieces:(index + 1) * pieces]
                joined = group[0] if pieces == 1 else _joined(group)
                if joined is None:
                    break
                own[rank] = joined
            if len(own) < len(by_rank):
                self.missing.append(key)
                return cases
            order: float = seen.order
            if key.kind == "gradient":
                complete = self._reference.gradient_order.get(key.name, [])
                # A step may accumulate the gradients of several micro-batches.
                each = len(complete) // len(calls)
                if each:
                    order = complete[(index + 1) * each - 1]
            place = next(iter(own.values())).place or seen.place
            cases.append(_Case(
                key, index, order, seen.tensor,
                f64[index].tensor if f64[index] is not None else None,
                seen.reductions, own, place,
            ))
        return cases

    # One value.

    def _compare(self, case: _Case) -> Value:
        key = case.key
        value = Value(
            key.kind, key.name, key.path, case.call, "right", place=case.place,
            order=case.order,
        )
        for seen in [Seen(case.reference, None, 0, ""), *case.seen.values()]:
            if unit(seen.tensor.dtype) > unit(self._coarsest):
                self._coarsest = seen.tensor.dtype
        stated = first_stated(case.seen)
        try:
            values = full_values(case.seen)
        except CannotAssemble as reason:
            value.status = "not compared"
            value.notes = [f"The DTensor cannot be assembled: {reason}."]
            if "holds" in str(reason):
                value.status = "wrong"
            return value
        reference, in_f64, values = _finite(case.reference, case.in_f64, values)
        value.bound = bound(reference, in_f64, self._coarsest, case.reductions)
        ranks = Ranks(
            values, reference, self._grid, value.bound, unit(self._coarsest)
        )
        if not ranks.is_grid:
            value.status = "not compared"
            value.notes = ["The ranks that hold it form no part of the mesh."]
            return value
        expected = self._expected(case)
        if expected is not None:
            value.expected = expected.placements
            parts = ranks.parts(expected.placements)
            if expected.rows is not None:
                agrees = ranks.agrees_in_rows(expected)
            else:
                agrees = parts is not None and ranks.agrees(expected.placements, parts)
            if agrees:
                value.layout = expected.placements
                return value
        found = ranks.fit(any_factor=key.kind == "output gradient")
        if found is not None:
            value.layout, value.factor = found.placements, found.factor
            accepted = (
                expected is None
                and not (key.kind in _WITHOUT_TERMS and found.is_partial)
                and not (stated is not None and self._contradicts(stated, found))
            )
            if accepted:
                if key.kind == "parameter":
                    self._layouts[key.name] = found
                return value
        if found is None and not self._has_shapes(ranks):
            value.status = "not compared"
            value.notes = [
                "No layout of the reference's shape "
                f"{list(reference.shape)} has these shapes: "
                f"{[list(v.shape) for v in values.values()][:4]}."
            ]
            return value
        value.status = "wrong"
        self._explain(value, case, ranks, found, stated)
        return value

    def _contradicts(self, stated, found: Fit) -> bool:
        """Returns whether the ranks hold terms over a mesh dim of the DTensor. The
        terms that it states are already summed."""
        at = [self._grid.coordinate(rank) for rank in stated.ranks.flatten().tolist()]
        return any(
            p.startswith("P") and len({coordinate[dim] for coordinate in at}) > 1
            for dim, p in enumerate(found.placements)
        )

    def _expected(self, case: _Case) -> Optional[Fit]:
        if case.key.kind in _AS_PARAMETER:
            return self._layouts.get(case.key.name)
        return self._stated.get(case.key)

    @staticmethod
    def _has_shapes(ranks: Ranks) -> bool:
        """Returns whether some layout has the shapes of the ranks' values."""
        if any(ranks.parts(placements) is not None for placements in ranks.options()):
            return True
        full = ranks.reference.shape
        return all(
            len(v.shape) == len(full)
            and sum(a != b for a, b in zip(v.shape, full)) <= 1
            and all(a <= b for a, b in zip(v.shape, full))
            for v in ranks.values.values()
        )

    # The explanation of a wrong value.

    def _explain(self, value, case, ranks: Ranks, found: Optional[Fit], stated) -> None:
        notes = value.notes
        grid = self._grid
        if stated is not None:
            notes.append(f"The DTensor states {text_of(stated)}.")
        if found is None:
            found = ranks.fit(any_factor=True)
        expected = Fit(value.expected) if value.expected else None
        if found is not None:
            value.layout, value.factor = found.placements, found.factor
            notes.append(f"Found: {words(found, grid)} ({found.text}).")
            if expected is not None:
                source = "as stated"
                if value.kind in _AS_PARAMETER:
                    source = "as the parameter"
                notes.append(
                    f"Expected: {words(expected, grid)} ({expected.text}), {source}."
                )
            notes += self._remedy(found, expected, value.kind)
        else:
            value.error, text = self._nearest(ranks)
            notes.append(text)
            self._explained += 1
            if self._explained <= _MOST_EXPLAINED:
                notes += self._contained(case, ranks)
        if self._last_terms is not None and value.kind in _FORWARD:
            terms = self._last_terms
            dims = [
                name
                for p, name in zip(terms.layout, grid.names)
                if p.startswith("P")
            ]
            notes.append(
                f"The value before it, {terms.title}, is a term on each rank "
                f"({','.join(terms.layout)}): a sum over {' and '.join(dims)} is "
                "missing between them."
            )

        elif self._last_rows is not None and value.kind in _FORWARD:
            notes.append(
                f"The value before it, {self._last_rows.title}, holds rows in another "
                f"order ({','.join(self._last_rows.layout)})."
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
            dims = self._dims_of_factor(found.factor)
            text = f"The factor is {number(found.factor)}"
            if dims:
                text += f": the size of {dims}"
            result.append(text + ".")
        if expected is not None and found.rows is not None:
            result.append("The ranks hold rows in another order than the parameter.")
        return result

    def _dims_of_factor(self, factor: float) -> str:
        """Returns the mesh dims whose sizes multiply to a factor or its inverse."""
        grid = self._grid
        for count in range(1, len(grid.names) + 1):
            for start in range(1 << len(grid.names)):
                dims = [d for d in range(len(grid.names)) if start >> d & 1]
                if len(dims) != count:
                    continue
                product = math.prod(grid.sizes[d] for d in dims)
                if product == 1:
                    continue
                names = " times ".join(grid.names[d] for d in dims)
                if abs(factor - product) < 1e-3 * product:
                    return names
                if abs(factor * product - 1) < 1e-3:
                    return f"{names}, inverted"
        return ""

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
        bad = [r for r, error in errors.items() if error > ranks._tolerance]
        text = (
            f"No layout makes it right. The nearest is {','.join(placements)}, with an "
            f"error of {worst:.3g} (the bound of float noise is {ranks._tolerance:.2g})"
        )
        own = self._own_factors(ranks, placements)
        if own:
            return worst, (
                f"In the layout {','.join(placements)} each rank holds another "
                f"multiple of the right value: {own}."
            )
        if 0 < len(bad) < len(errors):
            text += f"; only {_rank_list(bad)} {'is' if len(bad) == 1 else 'are'} wrong"
        return worst, text + "."

    @staticmethod
    def _own_factors(ranks: Ranks, placements) -> str:
        """Returns the factors of the ranks if each has its own, else an empty text."""
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
        return ", ".join(f"rank {rank} {number(factor)}" for rank, factor in named)

    def _contained(self, case: _Case, ranks: Ranks) -> "list[str]":
        """Returns sentences on values that a wrong value contains too often.

        The difference to the right value is a multiple of a parameter of the same
        module, or of an earlier value.
        """
        name = case.key.name
        inside = f"{name}." if name else ""
        suspects: "list[tuple[Key, torch.Tensor]]" = []
        parameters: "list[tuple[Key, torch.Tensor]]" = []
        for key, calls in self._reference.values.items():
            seen = _usable(calls)
            if not seen:
                continue
            if key.kind == "parameter" and f"{key.name}.".startswith(inside):
                parameters.append((key, seen[0].tensor))
            elif key.kind in _FORWARD and seen[0].order < case.order:
                if (key.name, key.path) != (name, case.key.path) or key.kind != (
                    case.key.kind
                ):
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
                times = self._row_multiple(
                    difference, tensor.to(wide), ranks._tolerance
                )
                if times is not None:
                    return [
                        f"In the layout {','.join(placements)} the value is right "
                        f"except for rows of {key.text()}, which it contains "
                        f"{number(1 + times)} times."
                    ]
            for key, tensor in suspects:
                times = self._multiple(difference, tensor.to(wide), ranks._tolerance)
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

    def _row_multiple(self, difference, tensor, bound: float) -> Optional[float]:
        """Returns k if each row of a difference is k times some row of a parameter,
        for a k that sizes of mesh dims explain."""
        if tensor.dim() != 2 or difference.dim() < 1 or tensor.shape[0] < 2:
            return None
        if difference.shape[-1] != tensor.shape[-1] or tensor.shape[-1] < FEW:
            return None
        rows = difference.reshape(-1, tensor.shape[-1])
        scale = float(difference.abs().max()) if difference.numel() else 0.0
        if scale == 0 or rows.numel() * tensor.shape[0] > LARGEST_TABLE:
            return None
        sizes = {size for size in self._grid.sizes if size > 1} | {self._grid.size}
        for times in sorted({s - 1.0 for s in sizes} | {1.0 / s - 1 for s in sizes}):
            rest = (rows[:, None] - times * tensor[None]).abs().amax(-1).amin(-1)
            if times and float(rest.max()) <= _rest(scale, bound):
                return times
        return None

    @staticmethod
    def _multiple(difference, tensor, bound: float) -> Optional[float]:
        """Returns k if a difference is k times a tensor, for a whole number or a
        fraction k."""
        sizes = zip(reversed(tensor.shape), reversed(difference.shape))
        if tensor.dim() > difference.dim() or any(a not in (1, b) for a, b in sizes):
            return None
        tensor = tensor.expand(difference.shape)
        below = float((tensor * tensor).sum().real)
        if below == 0:
            return None
        times = float((difference * tensor).sum().real) / below
        rest = (difference - times * tensor).abs().max()
        scale = float(difference.abs().max())
        if scale == 0 or not float(rest) <= _rest(scale, bound):
            return None
        return times


def _rest(scale: float, bound: float) -> float:
    """Returns the largest rest of a difference that is explained: float noise, unless
    the noise is about as large as the difference."""
    return max(1e-3 * scale, min(bound, 0.1 * scale))


def _excuse(values: "list[Value]") -> None:
    """Sets wrong values that the program itself corrects to "not compared".

    A module within a parallel implementation may compute values that no layout has,
    such as the embeddings of masked words. An enclosing module whose output is right
    shows that they are no mistake.
    """
    results = [value for value in values if value.kind in _FINAL]
    if results and all(value.status != "wrong" for value in results):
        wrong = [value for value in values if value.kind in _WITHIN]
    else:
        right = {
            value.name
            for value in values
            if value.kind == "output" and value.status == "right"
        } - {
            value.name
            for value in values
            if value.kind == "output" and value.status == "wrong"
        }
        wrong = [
            value
            for value in values
            if value.kind in ("input", "output")
            and any(_is_inside(value.name, name) for name in right)
        ]
    for value in wrong:
        if value.status == "wrong":
            value.status = "not compared"
            value.notes = [
                "No layout makes it right, but what follows from it is right."
            ]


def _is_inside(name: str, other: str) -> bool:
    return name != other and (not other or name.startswith(f"{other}."))


def _rank_list(ranks: "list[int]") -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks[:8]))


def _finite(reference, in_f64, values):
    """Replaces infinite elements, so that differences remain numbers."""
    finite = reference[torch.isfinite(reference)]
    largest = float(finite.abs().max()) if finite.numel() else 1.0
    if finite.numel() == reference.numel():
        return reference, in_f64, values

    def clean(tensor):
        return torch.nan_to_num(
            tensor, nan=largest / 2, posinf=2 * largest, neginf=-2 * largest
        )

    return (
        clean(reference),
        None if in_f64 is None else clean(in_f64),
        {rank: clean(value) for rank, value in values.items()},
    )
