"""OwnState gives each rank its own copy of the Python variables of user code, as each
process of a real run has.

    GROUP = None

    def parallelize(model, mesh):
        global GROUP
        GROUP = mesh.get_group("tp")    # rank 1 must not overwrite the group of rank 0

The variables are found from the functions that the user gives:

1. variables of enclosing functions, global variables that a function writes, and
   attributes of functions, classes and objects
2. entries of lists, dicts and sets of up to 1000 entries
3. states of generators of random numbers
4. tensors without a gradient in one of these

Modules of `nn.Module` are left out, because each rank builds its own. Code of libraries
is not searched. At most 5000 objects are searched, the nearest first. `OwnState.notes`
names variables that were left out.
"""

import collections
import dis
import enum
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any, Callable

import torch

from .slots import (
    Attributes,
    Cell,
    Contents,
    Global,
    Members,
    Slot,
    is_of_user,
    members_of,
    numbers_of,
)

# The state is exchanged at each wait of a rank, so its size is limited.
_MOST_ENTRIES = 1000
_MOST_OBJECTS = 5000
_LARGEST_TENSOR = 1 << 20
_PLAIN = (bool, bytes, complex, float, int, str, type(None))
_WRITE = dis.opmap["STORE_GLOBAL"]
_CONTAINERS = (
    dict, list, set, collections.OrderedDict, collections.defaultdict,
    collections.Counter, collections.deque,
)  # fmt: skip


def _names_in(code: types.CodeType) -> "tuple[set[str], set[str]]":
    """Returns the global names that code may read, and the names that it writes."""
    reads, writes = set(code.co_names), set()
    if _WRITE in code.co_code[::2]:
        writes = {
            instruction.argval
            for instruction in dis.get_instructions(code)
            if instruction.opcode == _WRITE
        }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner_reads, inner_writes = _names_in(constant)
            reads |= inner_reads
            writes |= inner_writes
    return reads, writes


class _Search:
    """A _Search finds the slots that functions can reach."""

    def __init__(self, roots: "list[Any]") -> None:
        self.slots: "dict[Any, Slot]" = {}
        #: The containers with too many entries, each with its entries.
        self.large: "list[tuple[Contents, Any]]" = []
        #: The objects that were visited; they stay alive, so that ids are unique. The
        #: variables of modules are no containers of the user.
        self._visited: "dict[int, Any]" = {id(sys.modules): sys.modules}
        for module in list(sys.modules.values()):
            variables = getattr(module, "__dict__", None)
            self._visited[id(variables)] = variables
        limit = len(self._visited) + _MOST_OBJECTS
        # The search is breadth first, so that a large object hides no near variables.
        waiting = collections.deque(roots)
        while waiting and len(self._visited) < limit:
            value = waiting.popleft()
            if type(value) not in _PLAIN and id(value) not in self._visited:
                self._visited[id(value)] = value
                waiting += self._inside(value)
        self.is_complete = not waiting

    def _add(self, key: Any, slot: Slot) -> None:
        self.slots.setdefault(key, slot)

    def _inside(self, value: Any) -> "Iterator[Any]":
        """Adds the slots of a value and returns its references."""
        kind = type(value)
        if isinstance(value, types.FunctionType):
            if is_of_user(value.__module__):
                yield from self._in_function(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, value.keywords)
        elif isinstance(value, (staticmethod, classmethod)):
            yield value.__func__
        elif isinstance(value, property):
            yield from (value.fget, value.fset)
        elif isinstance(value, type):
            if is_of_user(value.__module__) and not isinstance(value, enum.EnumMeta):
                self._add(id(value), Attributes(value))
                yield from list(vars(value).values())
                yield from value.__bases__
        elif isinstance(value, types.ModuleType):
            if is_of_user(value.__name__):
                for each in list(vars(value).values()):
                    if getattr(each, "__module__", None) == value.__name__:
                        yield each
        elif kind in _CONTAINERS:
            # A dict with this entry has the variables of executed code.
            is_code = isinstance(value, dict) and "__builtins__" in value
            if is_code:
                return
            contents = Contents(value)
            if len(value) > _MOST_ENTRIES:
                self.large.append((contents, contents.read()))
                return
            self._add(id(value), contents)
            yield from list(value.values() if isinstance(value, dict) else value)
        elif kind in (tuple, frozenset):
            yield from value
        elif isinstance(value, torch.nn.Module):
            yield kind
        elif (numbers := numbers_of(value)) is not None:
            self._add(id(value), numbers)
        elif is_of_user(kind.__module__) or kind is types.SimpleNamespace:
            yield from self._in_object(value)

    def _in_object(self, value: Any) -> "Iterator[Any]":
        yield type(value)
        if hasattr(value, "__dict__"):
            yield vars(value)
        if members := members_of(type(value)):
            slot = Members(value, members)
            self._add(id(value), slot)
            yield from slot.read().values()

    def _in_function(self, function: types.FunctionType) -> "Iterator[Any]":
        for cell in function.__closure__ or ():
            slot = Cell(cell)
            self._add(id(cell), slot)
            self._visited[id(cell)] = cell
            yield slot.read()
        yield from (vars(function), function.__defaults__, function.__kwdefaults__)
        yield getattr(function, "__wrapped__", None)
        variables = function.__globals__
        reads, writes = _names_in(function.__code__)
        for name in writes:
            key = id(variables), name
            self._add(key, Global(variables, name))
        yield from [variables[name] for name in reads if name in variables]


class OwnState:
    """An OwnState is the state of the user's variables.

    own = OwnState([build, parallelize, step])
    first, second = own.fresh(), own.fresh()
    own.give(first)             # the first rank runs
    first = own.take()
    own.give(second)            # the second rank runs, with variables of its own
    """

    def __init__(self, roots: "list[Any]") -> None:
        search = _Search(roots)
        self._slots = list(search.slots.values())
        self._large, self._is_complete = search.large, search.is_complete
        self._start = self.take()

    def fresh(self) -> "list[Any]":
        """Returns the state at the start, for one rank."""
        made: "dict[int, torch.Tensor]" = {}

        def copy(value: Any) -> Any:
            if not _is_copied(value):
                return value
            if id(value) not in made:
                made[id(value)] = value.clone()
            return made[id(value)]

        return [slot.copied(held, copy) for slot, held in zip(self._slots, self._start)]

    def take(self) -> "list[Any]":
        """Returns the present state."""
        return [slot.read() for slot in self._slots]

    def give(self, held: "list[Any]") -> None:
        """Writes a state into the variables."""
        for slot, each in zip(self._slots, held):
            slot.write(each)

    def restore(self) -> None:
        """Writes the state at the start into the variables."""
        self.give(self._start)

    def notes(self) -> "list[str]":
        """Returns sentences on variables that the ranks share, but should not."""
        notes = [
            f"{contents.text} has more than {_MOST_ENTRIES} entries and was changed; "
            "the ranks share it."
            for contents, start in self._large
            if not contents.has(start)
        ]
        if not self._is_complete:
            notes.append(
                f"The variables of build, parallelize and step reach more than "
                f"{_MOST_OBJECTS} objects; the ranks share the farthest ones."
            )
        return notes


def _is_copied(value: Any) -> bool:
    """Returns whether each rank gets a copy of a value."""
    return (
        type(value) is torch.Tensor
        and not value.requires_grad
        and not value.is_meta
        and value.numel() <= _LARGEST_TENSOR
    )
