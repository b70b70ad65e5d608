"""cases_of() pairs the values of the ranks with those of the reference."""

import dataclasses
from typing import Optional

import torch

from .keys import WITHOUT_TERMS, Key
from .noise import Error, Work
from .seen import Seen, usable
from .watch import Recording


@dataclasses.dataclass
class Case:
    """A Case is one value to compare."""

    key: Key
    call: int
    order: float
    reference: torch.Tensor
    #: The error of the reference, or None if f64 is not known.
    error: Optional[Error]
    work: Work
    seen: "dict[int, Seen]"
    place: str
    #: The number of calls of each rank that belong to this call of the reference.
    calls: int = 1
    #: The reference consists of integers.
    is_whole: bool = False


def joined(calls: "list[Seen]") -> Optional[Seen]:
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


def has_no_terms(case: Case) -> bool:
    """Returns whether the ranks must not hold terms of a value. A loss may be a term,
    but other results may not."""
    is_loss = case.reference.dim() == 0
    return case.key.kind in WITHOUT_TERMS or (
        case.key.kind == "result" and not is_loss
    )


def cases_of(
    reference: Recording, ranks: "list[Recording]"
) -> "tuple[list[Case], list[Key]]":
    """Returns the values to compare, and the keys of values that cannot be paired."""
    cases: "list[Case]" = []
    missing = []
    for key, calls in reference.values.items():
        by_rank = {
            recording.rank: usable(recording.values[key])
            for recording in ranks
            if key in recording.values
        }
        by_rank = {rank: seen for rank, seen in by_rank.items() if seen}
        if key.kind == "gradient":
            by_rank = _of_optimizers(by_rank, key.name, ranks)
        expected = usable(calls)
        can_pair = bool(by_rank and expected)
        paired = _paired(reference, key, expected, by_rank) if can_pair else []
        if len(paired) < max(1, len(expected)):
            missing.append(key)
        cases += paired
    return cases, missing


def _of_optimizers(by_rank, name: str, ranks: "list[Recording]"):
    """Returns the gradients of the ranks that update the parameter. The other ranks may
    have any gradients, as after a reduction to one rank."""
    stepped = {recording.rank for recording in ranks if name in recording.stepped}
    if not stepped:
        return by_rank
    return {rank: seen for rank, seen in by_rank.items() if rank in stepped}


def _paired(
    reference: Recording,
    key: Key,
    calls: "list[Seen]",
    by_rank: "dict[int, list[Seen]]",
) -> "list[Case]":
    """Returns the calls of a value up to the first one that has no partner."""
    counts = {len(seen) for seen in by_rank.values()}
    count = counts.pop()
    if counts or count % len(calls):
        return []
    pieces = count // len(calls)
    cases = []
    for index, seen in enumerate(calls):
        own = {}
        for rank, held in by_rank.items():
            group = held[index * pieces:(index + 1) * pieces]
            one = group[0] if pieces == 1 else joined(group)
            if one is None:
                return cases
            own[rank] = one
        order: float = seen.order
        if key.kind == "gradient":
            # A step may accumulate the gradients of several micro-batches.
            complete = reference.gradient_order.get(key.name, [])
            order = max((at for at in complete if at < seen.order), default=order)
        place = next(iter(own.values())).place or seen.place
        cases.append(Case(
            key, index, order, seen.tensor,
            seen.error, seen.work, own, place, pieces, seen.is_whole,
        ))
    return cases
