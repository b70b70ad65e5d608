"""Draws calls of one overload until torch took as many as were asked for."""

import contextlib
import itertools
import random
import warnings
import zlib
from typing import NamedTuple

import torch

from ..capture import Call, call_of, flat_tensors, torch_op
from ..kernel_quirks import spoils_memory
from . import all_families  # noqa: F401  (registers them)
from .arguments import draw_argument
from .drawer import DTYPES, RELATIONS, Drawer
from .families import family_of

_TRIES = 25  # for each call that is asked for
_AT_LEAST = 40  # calls worth of tries, until torch takes one
_KEPT_REFUSED = 12
_OUT_DTYPES = (
    torch.float64,
    torch.float32,
    torch.int64,
    torch.bool,
    torch.bfloat16,
    torch.int32,
    torch.uint8,
    torch.int8,
    torch.complex128,
    torch.complex64,
)


class Drawn(NamedTuple):
    """A call with the values of its operands."""

    call: Call
    inputs: tuple[torch.Tensor, ...]


class DrawnCalls(NamedTuple):
    valid: list[Drawn]
    refused: list[tuple[Call, str]]  # by torch, and why
    tries: int


def _is_out(argument):
    return argument.alias_info is not None and argument.is_out


def _draw_arguments(d, schema):
    family = family_of(d.base)
    names = {argument.name for argument in schema.arguments}
    if family is not None:
        drawn = family(d)
        d.given = {name: value for name, value in drawn.items() if name in names}
    for argument in schema.arguments:
        if argument.name in d.given or _is_out(argument):
            continue
        value = draw_argument(d, argument)
        if value is not None or not argument.has_default_value():
            d.given[argument.name] = value
    # In declared order: the order in which operands count.
    return {a.name: d.given[a.name] for a in schema.arguments if a.name in d.given}


def _copied(args):
    """Arguments that a call may write to."""

    def copy(value):
        if isinstance(value, torch.Tensor):
            return value.clone()
        return [copy(v) for v in value] if isinstance(value, list) else value

    return {name: copy(value) for name, value in args.items()}


def _result_dtypes(d, op, args):
    """Returns the result dtypes of the overload without `out`; None if there is
    no such overload."""
    packet = getattr(torch.ops, d.op.split(".")[0])
    packet = getattr(packet, d.base)
    for name in packet.overloads():
        other = getattr(packet, name)
        declared = other._schema.arguments
        if any(map(_is_out, declared)) or not set(args) <= {a.name for a in declared}:
            continue
        try:
            results = flat_tensors(other(**_copied(args)))
        except Exception:  # noqa: BLE001  (torch refuses by any exception)
            continue
        return [result.dtype for result in results]
    return None


def _with_outs(d, op, args, outs):
    """The arguments with results to write to, of the right shapes and of dtypes
    that torch takes."""
    dtypes = list(_OUT_DTYPES)
    if d.chance(0.3):
        d.rng.shuffle(dtypes)
    first = d.given.get("self")
    if isinstance(first, torch.Tensor):
        dtypes.insert(0, first.dtype)
    choices = [dtypes] * min(len(outs), 2) + [dtypes[:1]] * (len(outs) - 2)

    def candidates():
        if len(outs) <= 2:
            yield from itertools.islice(itertools.product(*choices), 70)
        if same := _result_dtypes(d, op, args):
            yield same
        elif len(outs) > 2:
            yield from itertools.islice(itertools.product(*choices), 70)

    for chosen in candidates():
        empty = {
            out.name: torch.empty(0, dtype=dtype)
            for out, dtype in zip(outs, chosen, strict=True)
        }
        try:
            op(**_copied(args), **empty)
        except Exception as error:  # noqa: BLE001  (torch refuses by any exception)
            why = error
            continue
        written = {n: d.tensor(t.shape, t.dtype) for n, t in empty.items()}
        return args | written
    raise why


def _run(op, args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op(**_copied(args))


class _Arms:
    """Which ways to draw have led to calls that torch takes."""

    def __init__(self, rng, choices):
        self.rng = rng
        self.taken = {choice: [1, 2] for choice in choices}

    def choose(self):
        weights = [taken / tried for taken, tried in self.taken.values()]
        return self.rng.choices(list(self.taken), weights)[0]

    def note(self, choice, taken):
        self.taken[choice][0] += taken
        self.taken[choice][1] += 1


def draw_calls(op_name, *, count, seed):
    """At most `count` distinct calls of one overload."""
    rng = random.Random(f"{op_name} {seed}")
    op = torch_op(op_name)
    outs = [a for a in op._schema.arguments if _is_out(a)]
    arms = _Arms(rng, list(itertools.product(RELATIONS, DTYPES)))
    found = {}
    refused = []
    tries = 0
    while len(found) < count and tries < (count if found else _AT_LEAST) * _TRIES:
        tries += 1
        arm = arms.choose()
        d = Drawer(op_name, rng, relation=arm[0], dtypes=arm[1])
        args = None
        try:
            with contextlib.redirect_stdout(None):
                args = _draw_arguments(d, op._schema)
                if spoils_memory(op_name, args):
                    continue
                wanted = [out for out in outs if out.name not in args]
                if wanted:
                    args = _with_outs(d, op, args, wanted)
                if spoils_memory(op_name, args):
                    continue
                results = _run(op, args)
            call, inputs = call_of(op_name, args, results)
            key = (call, zlib.crc32(repr([t.tolist() for t in inputs]).encode()))
        except Exception as error:  # noqa: BLE001  (torch refuses by any exception)
            arms.note(arm, 0)
            if args is not None and len(refused) < _KEPT_REFUSED:
                refused.append((call_of(op_name, args, ())[0], _first_line(error)))
            continue
        arms.note(arm, 1)
        found.setdefault(key, Drawn(call, tuple(inputs)))
    return DrawnCalls(list(found.values()), refused, tries)


def _first_line(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
