"""Numbers makes the numbers of random operators independent of the layout.

The reference stores the numbers of each call. A rank that draws numbers of a smaller
shape gets a part of the reference's numbers. The part follows from a tensor that is known
at the call, which is an operand of the operator or an input of the module that calls it.
The part of this tensor that the rank holds is found in the reference's tensor.

    torch.rand_like(x)             # the part of x
    x + torch.randn(x.shape[:2])   # the part of x, an input of the module

As for dropout, two ranks that draw the same part must have equal states of their
generators. The second rank keeps its own numbers if the states differ.
"""

import dataclasses
import itertools
from typing import Any, Optional

import torch
from torch._guards import detect_fake_mode
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from .places import user_place
from .watch import current

# Parts of a tensor that differ more, relative to the largest element, are others.
MOST_DIFFERENT = 1e-2
# More parts of a tensor are not tried.
MOST_PARTS = 4096


def part(tensor: torch.Tensor, offsets, shape) -> torch.Tensor:
    """Returns the elements of a tensor from `offsets` on."""
    for dim, (offset, size) in enumerate(zip(offsets, shape)):
        tensor = tensor.narrow(dim, offset, size)
    return tensor


def parts(full: torch.Tensor, shape):
    """Yields the offsets and elements of each part of a shape."""
    if full.dim() != len(shape) or any(a < b for a, b in zip(full.shape, shape)):
        return
    ranges = [range(a - b + 1) for a, b in zip(full.shape, shape)]
    for offsets in itertools.islice(itertools.product(*ranges), MOST_PARTS):
        yield offsets, part(full, offsets, shape)


def _place_of(own: torch.Tensor, full: torch.Tensor) -> "Optional[tuple[int, ...]]":
    """Returns the offsets of the only part of `full` that `own` equals."""
    if own.numel() == 0 or full.numel() == 0:
        return None
    most = MOST_DIFFERENT * float(full.abs().max())
    found = None
    for offsets, block in parts(full, own.shape):
        if float((block - own).abs().max()) <= most:
            if found is not None:
                return None
            found = offsets
    return found


@dataclasses.dataclass
class _Draw:
    """A _Draw is one call of a random operator in the reference run."""

    known: "list[Optional[torch.Tensor]]"
    numbers: torch.Tensor


class Draws:
    """Draws stores the calls of random operators in the reference run."""

    def __init__(self) -> None:
        self.calls: "dict[tuple[str, str], list[_Draw]]" = {}
        #: The generator's state of the first rank that drew each part.
        self.states: "dict[Any, bytes]" = {}
        #: Operators and lines of draws whose part is not known, and of draws in which
        #: replicas have different states.
        self.unknown: "dict[tuple[str, str], None]" = {}
        self.differ: "dict[tuple[str, str], None]" = {}

    def begin(self) -> None:
        """Forgets what other ranks drew."""
        for each in (self.states, self.unknown, self.differ):
            each.clear()

    def is_same_state(self, key: Any, state: bytes, operator: str) -> bool:
        """Returns whether a draw has the state of the first draw of the same part."""
        if self.states.setdefault(key, state) == state:
            return True
        self.differ[operator, user_place()] = None
        return False

    def notes(self) -> "list[str]":
        """Returns sentences on numbers that may make values wrong."""
        return [
            f"Ranks that hold the same part draw different numbers in {operator} at "
            f"{line or 'PyTorch'}: their generators have different states."
            for operator, line in list(self.differ)[:4]
        ] + [
            f"Ranks draw their own numbers in {operator} at {line or 'PyTorch'}: the "
            "part of the reference's numbers is not known."
            for operator, line in list(self.unknown)[:4]
        ]

    def find(self, name, number: int, known, shape):
        """Returns a rank's part of the reference's numbers and a key of it, or None."""
        calls = self.calls.get(name, [])
        if not calls:
            return None
        near = number % len(calls)
        order = [near, *(index for index in range(len(calls)) if index != near)]
        for index in order:
            offsets = self._offsets(calls[index], known, shape)
            if offsets is not None:
                numbers = part(calls[index].numbers, offsets, shape)
                return numbers, (name, index, offsets)
        if calls[near].numbers.shape == shape:
            return calls[near].numbers, (name, near, (0,) * len(shape))
        return None

    @staticmethod
    def _offsets(draw: _Draw, known, shape) -> "Optional[tuple[int, ...]]":
        full_shape = draw.numbers.shape
        if len(full_shape) != len(shape):
            return None
        for own, full in zip(known, draw.known):
            if own is None or full is None or own.dim() != full.dim():
                continue
            shared = 0
            for a, b, c, d in zip(own.shape, shape, full.shape, full_shape):
                if a != b or c != d:
                    break
                shared += 1
            if not shared or full_shape[shared:] != shape[shared:]:
                continue
            at = _place_of(own, full)
            if at is not None:
                return at[:shared] + (0,) * (len(shape) - shared)
        return None


def _values(tensor: Any) -> "Optional[torch.Tensor]":
    """Returns the numbers of a plain tensor."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    if not tensor.is_floating_point() or tensor.is_meta:
        return None
    return tensor.detach()


class Numbers(TorchDispatchMode):
    """Numbers replaces the numbers of random operators in one thread."""

    supports_higher_order_operators = True

    def __init__(self, draws: Draws, is_reference: bool) -> None:
        super().__init__()
        self.draws, self._is_reference = draws, is_reference
        self._counts: "dict[tuple[str, str], int]" = {}
        #: Code that replaces numbers itself sets this.
        self.paused = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(each, DTensor) for each in types):
            # DTensor calls the operator again, on its local tensor.
            return NotImplemented
        tags = getattr(func, "tags", ())
        if self.paused or torch.Tag.nondeterministic_seeded not in tags:
            return func(*args, **kwargs)
        if detect_fake_mode(args) is not None:
            # Sharding rules of DTensor run operators on fake tensors.
            return func(*args, **kwargs)
        generator = kwargs.get("generator") or torch.default_generator
        state = generator.get_state().numpy().tobytes()
        is_in_place = func._schema.name.endswith("_")
        known = self._known(args, is_in_place)
        result = func(*args, **kwargs)
        if type(result) is not torch.Tensor or result.is_meta:
            return result
        return self._same(func, known, state, result)

    @staticmethod
    def _known(args, is_in_place: bool) -> "list[Optional[torch.Tensor]]":
        """Returns the operand, and the inputs of the module that calls."""
        operands = [a for a in args if isinstance(a, torch.Tensor)][is_in_place:]
        known = [_values(operands[0]).clone() if operands and (
            _values(operands[0]) is not None
        ) else None]
        recording = current()
        if recording is not None and recording.modules:
            known += recording.inputs_of(recording.modules[-1])
        return known

    def _same(self, func, known, state: bytes, result: torch.Tensor) -> torch.Tensor:
        recording = current()
        module = recording.modules[-1] if recording and recording.modules else ""
        name = func._schema.name, module
        number = self._counts[name] = self._counts.get(name, -1) + 1
        if self._is_reference:
            draw = _Draw(known, result.detach().clone())
            self.draws.calls.setdefault(name, []).append(draw)
            return result
        found = self.draws.find(name, number, known, result.shape)
        operator = func._schema.name.split("::")[-1]
        if found is None:
            self.draws.unknown[operator, user_place()] = None
            return result
        numbers, key = found
        if self.draws.is_same_state(key, state, operator):
            result.detach().copy_(numbers)
        return result
