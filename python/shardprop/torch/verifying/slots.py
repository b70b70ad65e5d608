"""Slots are the places in which Python code holds state: variables, entries of
containers, attributes and states of generators of random numbers.

    slot = Contents(a_list)
    held = slot.read()
    a_list.append(1)
    slot.write(held)            # the list is as before
"""

import collections
import operator
import random
import reprlib
import sys
import types
from typing import Any, Callable

import torch

_LIBRARIES = {
    "_pytest", "datasets", "functorch", "numpy", "pandas", "pytest", "scipy",
    "shardprop", "sympy", "torch", "torchaudio", "torchgen", "torchvision",
    "transformers", "triton",
}  # fmt: skip
ABSENT = object()


def is_of_user(module: Any) -> bool:
    root = str(module).partition(".")[0]
    return root not in sys.stdlib_module_names and root not in _LIBRARIES


class Slot:
    """A Slot is a place that holds state. `write(read())` changes nothing."""

    def read(self) -> Any:
        raise NotImplementedError

    def write(self, held: Any) -> None:
        raise NotImplementedError

    def copied(self, held: Any, copy: "Callable[[Any], Any]") -> Any:
        """Returns held state with `copy` of each value in it."""
        return copy(held)


class Cell(Slot):
    """A Cell is a variable of an enclosing function."""

    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell

    def read(self) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:
            return ABSENT

    def write(self, held: Any) -> None:
        if held is not ABSENT:
            self._cell.cell_contents = held
        elif self.read() is not ABSENT:
            del self._cell.cell_contents


class Global(Slot):
    """A Global is a global variable."""

    def __init__(self, variables: dict, name: str) -> None:
        self._variables, self._name = variables, name

    def read(self) -> Any:
        return self._variables.get(self._name, ABSENT)

    def write(self, held: Any) -> None:
        if held is not ABSENT:
            self._variables[self._name] = held
        else:
            self._variables.pop(self._name, None)


class Contents(Slot):
    """A Contents is the entries of a container."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def read(self) -> Any:
        return self._container.copy()

    def write(self, held: Any) -> None:
        if self.has(held):
            return
        self._container.clear()
        if isinstance(self._container, (list, collections.deque)):
            self._container.extend(held)
        else:
            self._container.update(held)

    def has(self, held: Any) -> bool:
        """Returns whether the container has these objects."""
        own = self._container
        if len(own) != len(held):
            return False
        if isinstance(own, dict):
            return all(own.get(name, ABSENT) is held[name] for name in held)
        if isinstance(own, set):
            return own == held
        return all(map(operator.is_, own, held))

    @property
    def text(self) -> str:
        """The container in a few words, such as "A list that starts with [0, 1]"."""
        start = reprlib.repr(self._container)
        return f"A {type(self._container).__name__} that starts with {start}"

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


class Attributes(Slot):
    """An Attributes is the values in a class, without its methods."""

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
            if now.get(name, ABSENT) is not value:
                setattr(self._owner, name, value)

    def copied(self, held: Any, copy: "Callable[[Any], Any]") -> Any:
        return {name: copy(value) for name, value in held.items()}


class Members(Slot):
    """A Members is the attributes of an object whose class has `__slots__`."""

    def __init__(self, owner: Any, members: "dict[str, Any]") -> None:
        self._owner, self._members = owner, members

    def read(self) -> Any:
        found = {}
        for name, member in self._members.items():
            try:
                found[name] = member.__get__(self._owner)
            except AttributeError:
                pass  # not assigned
        return found

    def write(self, held: Any) -> None:
        now = self.read()
        for name in now.keys() - held.keys():
            self._members[name].__delete__(self._owner)
        for name, value in held.items():
            if now.get(name, ABSENT) is not value:
                self._members[name].__set__(self._owner, value)

    def copied(self, held: Any, copy: "Callable[[Any], Any]") -> Any:
        return {name: copy(value) for name, value in held.items()}


def members_of(kind: type) -> "dict[str, Any]":
    """Returns the descriptors of the `__slots__` of a class and its bases."""
    return {
        f"{base.__qualname__}.{name}": member
        for base in kind.__mro__
        if is_of_user(base.__module__)
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    }


class Numbers(Slot):
    """A Numbers is the state of a generator of random numbers."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
        self._get, self._put = get, put

    def read(self) -> Any:
        return self._get()

    def write(self, held: Any) -> None:
        self._put(held)


def numbers_of(value: Any) -> "Numbers | None":
    if isinstance(value, torch.Generator):
        return Numbers(value.get_state, value.set_state)
    if isinstance(value, random.Random):
        return Numbers(value.getstate, value.setstate)
    if type(value).__module__.startswith("numpy.random"):
        if hasattr(value, "bit_generator"):
            bits = value.bit_generator
            return Numbers(
                lambda: bits.state, lambda held: setattr(bits, "state", held)
            )
        if hasattr(value, "set_state"):
            return Numbers(value.get_state, value.set_state)
    return None
