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
import functools
from typing import Optional

import torch

from .cases import Case, cases_of, has_no_terms, joined
from .excuses import check_rows_of_results, excuse
from .explain import Explainer
from .fits import fit, fit_in_groups
from .keys import AFTER, AS_PARAMETER, FORWARD, WITHIN, Key
from .layouts import Fit, Grid
from .noise import (
    Noise,
    coarser,
    computable,
    noise_of,
    noise_of_integers,
    noise_of_update,
    unit,
)
from .padding import padded, paddings
from .ranks import Ranks
from .report import Value
from .rows import agrees_in_rows, reordered
from .stated import CannotAssemble, first_stated, full_values
from .seen import Seen, usable
from .watch import Recording

# A value of the model is looked for in so many nodes after the last one that was found.
_WINDOW = 40


class Comparison:
    """A Comparison checks the recordings of the ranks against the reference."""

    def __init__(
        self,
        reference: Recording,
        ranks: "list[Recording]",
        grid: Grid,
        stated: "Optional[dict[Key, Fit]]" = None,
    ) -> None:
        """`stated` has the layouts that values must have."""
        self._reference = reference
        self._ranks, self._grid = ranks, grid
        self._layouts: "dict[str, Fit]" = {}
        self._parameters: "dict[str, Case]" = {}
        self._stated = stated or {}
        #: The last values of the forward pass if they are terms.
        self._last_terms: "list[Value]" = []
        self._last_rows: "Optional[Value]" = None
        self._coarsest = torch.float64
        self._explainer = Explainer(reference, grid)
        self._by_key: "dict[Key, list[Case]]" = {}
        self._joined_fits: "dict[Key, Optional[Fit]]" = {}
        cases, self.missing = cases_of(reference, ranks)
        self._cases = sorted(cases, key=lambda case: case.order)

    def run(self) -> "list[Value]":
        """Returns all compared values in program order."""
        values = []
        for case in self._cases:
            self._by_key.setdefault(case.key, []).append(case)
        for case in self._cases:
            value = self._compare(case)
            values.append(value)
            if case.key.kind in FORWARD and value.status == "right":
                if not any(p.startswith("P") for p in value.layout):
                    self._last_terms = []
                elif case.reference.dim() > 0:
                    self._last_terms.append(value)
                rows = any(p.startswith("rows") for p in value.layout)
                self._last_rows = value if rows else None
        values += self._lost_gradients()
        values.sort(key=lambda value: value.order)
        check_rows_of_results(values)
        excuse(values)
        self._end_in_terms(values)
        wrong = self._aligned(values)
        return [wrong, *values] if wrong is not None else values

    def _end_in_terms(self, values: "list[Value]") -> None:
        """Makes the last outputs wrong if they are terms and nothing follows from them,
        so that nothing shows whether the program adds the terms."""
        if any(value.kind in AFTER for value in values):
            return
        for value in self._last_terms:
            value.status = "wrong"
            value.notes.append(
                "The ranks hold terms of it at the end of the program: a sum is missing."
            )

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
            # A gradient that the program has used and removed is not known.
            if any(key.name in recording.gradient_order for recording in self._ranks):
                continue
            seen = usable(self._reference.values[key])[0]
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
                case = Case(
                    key, 0, 0.0, calls[0].tensor, None, calls[0].work, seen,
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

    # One value.

    def _compare(self, case: Case) -> Value:
        key = case.key
        value = Value(
            key.kind, key.name, key.path, case.call, "right", place=case.place,
            order=case.order,
        )
        dtypes = [case.reference.dtype, case.work.coarsest]
        for seen in case.seen.values():
            dtypes += [seen.tensor.dtype, seen.sent]
        self._coarsest = functools.reduce(coarser, dtypes, self._coarsest)
        stated = first_stated(case.seen)
        try:
            values = full_values(case.seen)
        except CannotAssemble as reason:
            value.status = "not compared"
            value.notes = [f"The DTensor cannot be assembled: {reason}."]
            if "holds" in str(reason):
                value.status = "wrong"
            return value
        ranks, value.bound = self._ranks_of(case, values)
        if not ranks.is_grid:
            value.status = "not compared"
            value.notes = ["The ranks that hold it form no part of the mesh."]
            return value
        bounds = ranks.noise.bounds
        if bounds.numel() and not bool(torch.isfinite(bounds).any()):
            value.status = "not compared"
            value.notes = [
                "Float noise decides on these integers."
                if case.is_whole
                else "The optimizer's states of all elements underflow."
            ]
            return value
        expected = self._expected(case)
        if expected is not None:
            value.expected = expected.placements
            if expected.padding in paddings(ranks):
                # Padding without a mask gets gradients.
                is_gradient = key.kind == "gradient"
                wider = padded(ranks, expected.padding, keeps=is_gradient)
                parts = wider.parts(expected.placements)
                if parts is not None and wider.agrees(expected.placements, parts):
                    value.layout = expected.placements
                    return value
            parts = ranks.parts(expected.placements)
            if expected.rows is not None:
                agrees = agrees_in_rows(ranks, expected)
            else:
                agrees = parts is not None and ranks.agrees(expected.placements, parts)
            if agrees:
                value.layout = expected.placements
                return value
        found = fit(ranks, any_factor=key.kind == "output gradient")
        if found is not None:
            value.layout, value.factor = found.placements, found.factor
            accepted = (
                expected is None
                and not (found.is_partial and has_no_terms(case))
                and not (stated is not None and self._contradicts(stated, found))
            )
            if accepted:
                if key.kind == "parameter":
                    self._layouts[key.name] = found
                    self._parameters[key.name] = case
                return value
            if key.kind in AS_PARAMETER and self._is_layout_of_parameter(key, found):
                return value
        if found is None and key.kind == "output gradient":
            in_groups = fit_in_groups(ranks, any_factor=True)
            if in_groups is not None:
                value.layout = in_groups[0].placements
                return value
        if found is None and stated is None:
            together = self._fit_of_all_calls(key)
            if together is not None:
                value.layout, value.factor = together.placements, together.factor
                return value
        if found is None and case.calls > 1:
            # The ranks may have the micro-batches in another order.
            other_order = reordered(ranks)
            if other_order is not None and other_order[1] == 0:
                value.layout = other_order[0]
                return value
        if found is None and not self._has_shapes(ranks):
            value.status = "not compared"
            value.notes = [
                "No layout of the reference's shape "
                f"{list(case.reference.shape)} has these shapes: "
                f"{[list(v.shape) for v in values.values()][:4]}."
            ]
            return value
        value.status = "wrong"
        self._explainer.explain(
            value, case.order, ranks, found, stated, self._last_terms, self._last_rows
        )
        return value

    def _ranks_of(self, case: Case, values) -> "tuple[Ranks, float]":
        """Returns the values of the ranks, and the bound of their rounding error."""
        noise = self._noise_of(case)
        any_factor = case.key.kind == "output gradient"
        values = {rank: computable(held) for rank, held in values.items()}
        reference = computable(case.reference)
        reference, values = _finite(reference, values, any_factor)
        if reference.dim() > 1 and all(v.dim() == 1 for v in values.values()):
            # FSDP1 shards flattened parameters.
            reference = reference.flatten()
            noise = dataclasses.replace(noise, bounds=noise.bounds.flatten())
        ranks = Ranks(values, reference, self._grid, noise, unit(self._coarsest))
        return ranks, ranks.bound

    def _noise_of(self, case: Case) -> Noise:
        if case.is_whole:
            return noise_of_integers(case.reference, case.error)
        given = case.reference, case.error, self._coarsest, case.work
        update = None
        if case.key.kind == "updated parameter":
            update = self._reference.update_of(case.key.name)
        if update is None:
            return noise_of(*given)
        gradient = usable(
            self._reference.values.get(Key("gradient", case.key.name), [])
        )
        if gradient:
            last = gradient[-1]
            update.gradient = last.tensor
            update.noise = noise_of(last.tensor, last.error, self._coarsest, last.work)
        return noise_of_update(*given, update)

    def _is_layout_of_parameter(self, key: Key, found: Fit) -> bool:
        """Returns whether the parameter has a layout too. A parameter of equal elements,
        such as a bias of zeros, has several layouts."""
        case = self._parameters.get(key.name)
        if case is None or found.is_partial or abs(found.factor - 1) > 1e-6:
            return False
        ranks, _ = self._ranks_of(case, full_values(case.seen))
        if found.rows is not None:
            return agrees_in_rows(ranks, found)
        parts = ranks.parts(found.placements)
        return parts is not None and ranks.agrees(found.placements, parts)

    def _fit_of_all_calls(self, key: Key) -> Optional[Fit]:
        """Returns the layout of the values of all calls of a module.

        Accumulation on each rank calls a module once for each micro-batch of the rank.
        The calls together have the rows of the reference's calls together.
        """
        if key not in self._joined_fits:
            self._joined_fits[key] = None
            cases = self._by_key.get(key, [])
            if len(cases) > 1 and key.kind in WITHIN:
                self._joined_fits[key] = self._joined_fit(cases)
        return self._joined_fits[key]

    def _joined_fit(self, cases: "list[Case]") -> Optional[Fit]:
        first = cases[0]
        if any(case.seen.keys() != first.seen.keys() for case in cases):
            return None
        if any(case.reference.dim() == 0 for case in cases):
            return None
        own = {
            rank: joined([case.seen[rank] for case in cases]) for rank in first.seen
        }
        full = joined([Seen(case.reference, None, 0, "") for case in cases])
        if full is None or any(seen is None for seen in own.values()):
            return None
        values = {rank: seen.tensor for rank, seen in own.items() if seen is not None}
        noises = [self._noise_of(case) for case in cases]
        noise = Noise(
            torch.cat([noise.bounds for noise in noises]),
            max(noise.typical for noise in noises),
        )
        ranks = Ranks(values, full.tensor, self._grid, noise, unit(self._coarsest))
        return fit(ranks, any_factor=first.key.kind == "output gradient")

    def _contradicts(self, stated, found: Fit) -> bool:
        """Returns whether the ranks hold terms over a mesh dim of the DTensor. The
        terms that it states are already summed."""
        at = [self._grid.coordinate(rank) for rank in stated.ranks.flatten().tolist()]
        return any(
            p.startswith("P") and len({coordinate[dim] for coordinate in at}) > 1
            for dim, p in enumerate(found.placements)
        )

    def _expected(self, case: Case) -> Optional[Fit]:
        if case.key.kind in AS_PARAMETER:
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


def _finite(reference, values, any_factor: bool):
    """Replaces infinite elements, so that differences remain numbers. With `any_factor`
    the infinite elements of a multiple become this multiple, too."""
    if bool(torch.isfinite(reference).all()):
        return reference, values
    largest = _largest_of([reference])
    of_ranks = _largest_of(values.values()) if any_factor else largest

    def clean(tensor, largest):
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        return torch.nan_to_num(
            tensor.to(wide), nan=largest / 2, posinf=2 * largest, neginf=-2 * largest
        )

    return clean(reference, largest), {
        rank: clean(value, of_ranks) for rank, value in values.items()
    }


def _largest_of(tensors) -> float:
    """Returns the largest size of the finite elements, or 1."""
    sizes = [tensor[torch.isfinite(tensor)].abs() for tensor in tensors]
    return max((float(each.max()) for each in sizes if each.numel()), default=1.0)
