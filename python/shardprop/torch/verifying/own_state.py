"""OwnState gives each rank its own copy of the Python variables of user code, as each
process of a real run has.

    GROUP = None

    def parallelize(model, mesh):
        global GROUP
        GROUP = mesh.get_group("tp")    # rank 1 must not overwrite the group of rank 0

The variables are found from the functions that the user gives:

1. variables of enclosing functions, global variables that a function writes, and
   attributes of functions, classes and objects
2. entries of lists, dicts and sets
3. states of generators of random numbers
4. tensors without a gradient in one of these

Modules of `nn.Module` are left out, because each rank builds its own. Code of libraries
is not searched.
"""

import collections
import dis
import enum
import functools
import operator
import random
import sys
import types
from collections.abc import Iterator
from typing import Any, Callable

import torch

_LIBRARIES = {
    "_pytest", "datasets", "functorch", "numpy", "pandas", "pytest", "scipy",
    "shardprop", "sympy", "torch", "torchaudio", "torchgen", "torchvision",
    "transformers", "triton",
}  # fmt: skip
# The state is exchanged at each wait of a rank, so its size is limited.
_MOST_ENTRIES = 1000
_MOST_OBJECTS = 5000
_LARGEST_TENSOR = 1 << 20
_ABSENT = object()
_WRITE = dis.opmap["STORE_GLOBAL"]
_CONTAINERS = (
    dict, list, set, collections.OrderedDict, collections.defaultdict,
    collections.Counter, collections.deque,
)  # fmt: skip


def _is_of_user(module: Any) -> bool:
    root = str(module).partition(".")[0]
    return root not in sys.stdlib_module_names and root not in _LIBRARIES


class _Slot:
    """A _Slot is a place that holds state. `write(read())` changes nothing."""

    def read(self) -> Any:
        raise NotImplementedError

    def write(self, held: Any) -> None:
        raise NotImplementedError

    def copied(self, held: Any, copy: "Callable[[Any], Any]") -> Any:
        """Returns held state with `copy` of each value in it."""
        return copy(held)


class _Cell(_Slot):
    """A _Cell is a variable of an enclosing function."""

    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell

    def read(self) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:
            return _ABSENT

    def write(self, held: Any) -> None:
        if held is not _ABSENT:
            self._cell.cell_contents = held
        elif self.read() is not _ABSENT:
            del self._cell.cell_contents


class _Global(_Slot):
    """A _Global is a global variable."""

    def __init__(self, variables: dict, name: str) -> None:
        self._variables, self._name = variables, name

    def read(self) -> Any:
        return self._variables.get(self._name, _ABSENT)

    def write(self, held: Any) -> None:
        if held is not _ABSENT:
            self._variables[self._name] = held
        else:
            self._variables.pop(self._name, None)


class _Contents(_Slot):
    """A _Contents is the entries of a container."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def read(self) -> Any:
        return self._container.copy()

    def write(self, held: Any) -> None:
        if self._has(held):
            return
        self._container.clear()
        if isinstance(self._container, (list, collections.deque)):
            self._container.extend(held)
        else:
            self._container.update(held)

    def _has(self, held: Any) -> bool:
        """Returns whether the container has these objects."""
        own = self._container
        if len(own) != len(held):
            return False
        if isinstance(own, dict):
            return all(own.get(name, _ABSENT) is held[name] for name in held)
        if isinstance(own, set):
            return own == held
        return all(map(operator.is_, own, held))

    def copied(self, held: Any, copy: "Callable[[Any], Any]") -> Any:
        result = held.copy()
        result.clear()
        if isinstance(held, dict):
            result.update({name: copy(value) for name, value in held.items()})
        elif isinstance(held, set):
            result.update(held)
        else:
            result.extend(map(copy, held))
        return result


class _Attributes(_Slot):
    """An _Attributes is the values in a class, without its methods."""

    def __init__(self, owner: type) -> None:
        self._owner = owner

    def read(self) -> Any:
        return {
            name: value
            for name, value in vars(self._owner).items()
            if not name.startswith("__") and not hasattr(type(value), "__get__")
        }

    def write(self, held: Any) -> None:
        now = self.read()
        for name in now.keys() - held.keys():
            delattr(self._owner, name)
        for name, value in held.items():
            if now.get(name, _ABSENT) is not value:
                setattr(self._owner, name, value)

    def copied(self, held: Any, copy: "Callable[[Any], Any]") -> Any:
        return {name: copy(value) for name, value in held.items()}


class _Numbers(_Slot):
    """A _Numbers is the state of a generator of random numbers."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
        self._get, self._put = get, put

    def read(self) -> Any:
        return self._get()

    def write(self, held: Any) -> None:
        self._put(held)


def _numbers_of(value: Any) -> "_Numbers | None":
    if isinstance(value, torch.Generator):
        return _Numbers(value.get_state, value.set_state)
    if isinstance(value, random.Random):
        return _Numbers(value.getstate, value.setstate)
    if type(value).__module__.startswith("numpy.random"):
        if hasattr(value, "bit_generator"):
            bits = value.bit_generator
            return _Numbers(
                lambda: bits.state, lambda held: setattr(bits, "state", held)
            )
        if hasattr(value, "set_state"):
            return _Numbers(value.get_state, value.set_state)
    return None


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
        self.slots: "dict[Any, _Slot]" = {}
        #: The objects that were visited; they stay alive, so that ids are unique. The
        #: variables of modules are no containers of the user.
        self._visited: "dict[int, Any]" = {id(sys.modules): sys.modules}
        for module in list(sys.modules.values()):
            variables = getattr(module, "__dict__", None)
            self._visited[id(variables)] = variables
        limit = len(self._visited) + _MOST_OBJECTS
        waiting = list(roots)
        while waiting and len(self._visited) < limit:
            value = waiting.pop()
            if id(value) not in self._visited:
                self._visited[id(value)] = value
                waiting += self._inside(value)

    def _add(self, key: Any, slot: _Slot) -> None:
        self.slots.setdefault(key, slot)

    def _inside(self, value: Any) -> "Iterator[Any]":
        """Adds the slots of a value and returns its references."""
        kind = type(value)
        if isinstance(value, types.FunctionType):
            if _is_of_user(value.__module__):
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
            if _is_of_user(value.__module__) and not isinstance(value, enum.EnumMeta):
                self._add(id(value), _Attributes(value))
                yield from list(vars(value).values())
                yield from value.__bases__
        elif isinstance(value, types.ModuleType):
            if _is_of_user(value.__name__):
                for each in list(vars(value).values()):
                    if getattr(each, "__module__", None) == value.__name__:
                        yield each
        elif kind in _CONTAINERS:
            # A dict with this entry has the variables of executed code.
            is_code = isinstance(value, dict) and "__builtins__" in value
            if len(value) <= _MOST_ENTRIES and not is_code:
                self._add(id(value), _Contents(value))
                yield from list(value.values() if isinstance(value, dict) else value)
        elif kind in (tuple, frozenset):
            yield from value
        elif isinstance(value, torch.nn.Module):
            yield kind
        elif (numbers := _numbers_of(value)) is not None:
            self._add(id(value), numbers)
        elif hasattr(value, "__dict__") and (
            _is_of_user(kind.__module__) or kind is types.SimpleNamespace
        ):
            yield from (kind, vars(value))

    def _in_function(self, function: types.FunctionType) -> "Iterator[Any]":
        for cell in function.__closure__ or ():
            slot = _Cell(cell)
            self._add(id(cell), slot)
            self._visited[id(cell)] = cell
            yield slot.read()
        yield from (vars(function), function.__defaults__, function.__kwdefaults__)
        yield getattr(function, "__wrapped__", None)
        variables = function.__globals__
        reads, writes = _names_in(function.__code__)
        for name in writes:
            key = id(variables), name
            self._add(key, _Global(variables, name))
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
        self._slots = list(_Search(roots).slots.values())
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


def _is_copied(value: Any) -> bool:
    """Returns whether each rank gets a copy of a value."""
    return (
        type(value) is torch.Tensor
        and not value.requires_grad
        and not value.is_meta
        and value.numel() <= _LARGEST_TENSOR
    )
