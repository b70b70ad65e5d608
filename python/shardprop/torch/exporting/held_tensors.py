"""Some models keep tensors outside of their parameters and buffers, such as the layers
of a cache.

torch.export gives parameters and buffers to the program as inputs. It takes every
other tensor for a constant, although the model may write it:

    self.cache = StaticCache(...)                    # writes layers[0].keys
    self.register_buffer("key_cache_0", self.cache.layers[0].keys)

If such a tensor is also a buffer, it is this buffer while the model is traced. A tensor
without values (of the meta device) becomes a buffer, and so does a constant that the
program writes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import InputKind

from . import parameters

_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, torch.dtype)
_MOST_LEVELS = 12


def has_no_values(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, FakeTensor) or tensor.device.type == "meta"


class _Place(NamedTuple):
    """A place with a tensor or device in an object that is not a module."""

    path: "tuple[str, ...]"  # ("static_cache", "layers", "0", "keys")
    held: Any  # a tensor, or the device on which the object creates tensors
    put: "Callable[[Any], None]"


def _items(value: Any) -> "Iterator[tuple[str, Any, Callable[[Any], None]]]":
    """Yields each attribute or element: name, value, and a setter."""
    if isinstance(value, dict):
        for key, held in list(value.items()):
            yield str(key), held, lambda new, key=key: value.__setitem__(key, new)
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield str(index), held, lambda new, i=index: value.__setitem__(i, new)
    elif not isinstance(value, (tuple, set, frozenset)):
        yield from _items(getattr(value, "__dict__", {}))


def _places(
    value: Any, path: "tuple[str, ...]", seen: "set[int]"
) -> "Iterator[_Place]":
    if id(value) in seen or len(path) > _MOST_LEVELS or callable(value):
        return
    seen.add(id(value))
    for name, held, put in _items(value):
        if isinstance(held, (torch.Tensor, torch.device)):
            yield _Place((*path, name), held, put)
        elif not isinstance(held, (*_PLAIN, torch.nn.Module)):
            yield from _places(held, (*path, name), seen)


def _own_attributes(module: torch.nn.Module) -> "dict[str, Any]":
    """Returns the attributes that not every module has."""
    return {
        name: value
        for name, value in vars(module).items()
        if name not in _OF_EVERY_MODULE
    }


_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))


def _free_name(module: torch.nn.Module, path: "tuple[str, ...]") -> str:
    wanted = name = "_".join(part.strip("_").replace(".", "_") for part in path)
    number = 0
    while hasattr(module, name):
        number += 1
        name = f"{wanted}_{number}"
    return name


def hold(root: torch.nn.Module) -> "dict[int, str]":
    """Puts buffers of a module and its submodules into the objects that share them,
    each time before `root` runs. Returns names for the tensors that are not buffers, by
    id.
    """
    named = {}  # by tensor: the module and name of a buffer or parameter
    for module in root.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    named.setdefault(id(tensor), (tensors, name))
    held = []
    names = {}
    seen: "set[int]" = set()
    for prefix, module in root.named_modules():
        for name, value in _own_attributes(module).items():
            if isinstance(value, torch.Tensor):
                if id(value) not in named and has_no_values(value):
                    delattr(module, name)
                    module.register_buffer(name, value, persistent=False)
                    named[id(value)] = (module._buffers, name)
                continue
            if isinstance(value, torch.device):
                setattr(module, name, _here(value))
                continue
            for place in _places(value, (name,), seen):
                tensor = place.held
                if isinstance(tensor, torch.device):
                    place.put(_here(tensor))
                    continue
                buffer = _free_name(module, place.path)
                if id(tensor) not in named and has_no_values(tensor):
                    module.register_buffer(buffer, tensor, persistent=False)
                    named[id(tensor)] = (module._buffers, buffer)
                if id(tensor) in named:
                    held.append((place, *named[id(tensor)]))
                else:
                    names[id(tensor)] = f"{prefix}.{buffer}" if prefix else buffer
    if not held:
        return names

    def enter(*_):
        for place, tensors, name in held:
            place.put(tensors[name])

    def leave(*_):
        for place, _, _ in held:
            place.put(place.held)

    root.register_forward_pre_hook(enter)
    root.register_forward_hook(leave, always_call=True)
    return names


def _here(device: torch.device) -> torch.device:
    """Returns the device of the fake tensors of an exported module."""
    return torch.device("cpu") if device.type == "meta" else device


def written_constants_as_buffers(
    program: torch.export.ExportedProgram, names: "dict[int, str]"
) -> None:
    """Turns every constant that the program writes into a buffer, in place. `names` has
    their names, by id of the constant."""
    graph, specs = program.graph, program.graph_signature.input_specs
    memory = parameters.memory_of(graph)
    written = {
        memory[tensor]
        for node in graph.nodes
        for tensor in parameters.written_or_seen(node)[0]
    }
    placeholders = graph.find_nodes(op="placeholder")
    kinds = [spec.kind for spec in specs]
    constants = [i for i, kind in enumerate(kinds) if kind is InputKind.CONSTANT_TENSOR]
    place = constants[0] if constants else 0
    for index in constants:
        if placeholders[index] not in written:
            continue
        # Buffers come before constants.
        spec = specs.pop(index)
        spec.kind, spec.persistent = InputKind.BUFFER, False
        value = program.constants.pop(spec.target)
        spec.target = names.get(id(value), spec.target)
        program.constants[spec.target] = value
        specs.insert(place, spec)
        node = placeholders.pop(index)
        if index != place:
            placeholders[place].prepend(node)
        placeholders.insert(place, node)
        place += 1
    program.graph_module.recompile()
