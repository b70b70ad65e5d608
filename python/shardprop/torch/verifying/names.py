"""Names gives the modules and parameters of a parallel model the names that they have
in the model of build().

A module keeps its name if parallelize() puts it into another container, such as a stage
of a pipeline. A copy is recognized by the values of its parameters. Every other module
has the name of its path.
"""

import hashlib
import weakref
from typing import Any, Optional

import torch
from torch import nn
from torch.distributed.tensor import DTensor

# Wrappers add these parts to the names of modules and parameters.
_WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")
# Larger parameters (elements) are recognized by their first elements.
_LONGEST_PRINT = 1 << 16


def plain_name(name: str) -> str:
    """Returns a name without the parts that wrappers add."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def modules_of(value: Any, depth: int = 3) -> "list[nn.Module]":
    """Returns the outermost modules in what parallelize() returned: a module, a
    structure, or an object such as a pipeline schedule."""
    if isinstance(value, nn.Module):
        return [value]
    if depth == 0 or value is None or isinstance(value, (str, bytes, torch.Tensor)):
        return []
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    found: "list[nn.Module]" = []
    for part in parts:
        for module in modules_of(part, depth - 1):
            if not any(module is other for other in found):
                found.append(module)
    return found


def _print_of(tensor: torch.Tensor) -> "Optional[str]":
    """Returns a text that equal tensors share, or None if a tensor has no values."""
    if isinstance(tensor, DTensor) or tensor.is_meta or tensor.numel() == 0:
        return None
    try:
        values = tensor.detach().reshape(-1)[:_LONGEST_PRINT].double().numpy()
    except (RuntimeError, TypeError):
        return None
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    return f"{tuple(tensor.shape)} {tensor.dtype} {digest}"


def _joined(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part


class Names:
    """A Names is the naming of one rank."""

    def __init__(self) -> None:
        self._names: "dict[int, tuple[Any, Optional[str]]]" = {}
        #: The modules of the built model by the values of their parameters. Values that
        #: several modules have lead to no module.
        self._prints: "dict[str, Optional[str]]" = {}
        self._roots: "list[nn.Module]" = []
        self._root_is_model = True

    def built(self, model: nn.Module) -> None:
        """Takes the names of the model that build() returned."""
        self._roots = [model]
        for path, module in model.named_modules():
            self._names[id(module)] = weakref.ref(module), plain_name(path)
            for key, parameter in module.named_parameters(recurse=False):
                text = _print_of(parameter)
                if text is not None:
                    text += key
                    self._prints[text] = None if text in self._prints else (
                        plain_name(path)
                    )

    def become(self, made: Any) -> None:
        """Takes what parallelize() returned."""
        roots = modules_of(made)
        if roots:
            self._roots = roots
            # The roots of a schedule are stages, and their outputs are not the model's.
            self._root_is_model = isinstance(made, nn.Module)
        for root in self._roots:
            self._register(root)
        self._prints = {}

    def of(self, module: nn.Module) -> Optional[str]:
        """Returns the name of a module, or None if it is not part of the model."""
        if id(module) not in self._names:
            for root in self._roots:
                self._register(root)
            if id(module) not in self._names:
                self._names[id(module)] = weakref.ref(module), None
        reference, name = self._names[id(module)]
        if reference() is not module:
            del self._names[id(module)]
            return self.of(module)
        if not self._root_is_model and any(module is root for root in self._roots):
            return name or None
        return name

    def tensors(self, kind: str) -> "dict[str, torch.Tensor]":
        """Returns the parameters or buffers by name, under each of their names."""
        found: "dict[str, torch.Tensor]" = {}
        for root in self._roots:
            for module in root.modules():
                name = self.of(module)
                if name is None and module is root:
                    name = ""
                if name is None:
                    continue
                held = module._parameters if kind == "parameter" else module._buffers
                for key, tensor in held.items():
                    if tensor is not None:
                        found.setdefault(plain_name(_joined(name, key)), tensor)
        return found

    def _register(self, root: nn.Module) -> None:
        # DDP has the model as its submodule `module`.
        is_ddp = isinstance(root, nn.parallel.DistributedDataParallel)
        paths = {}
        for path, module in root.named_modules(remove_duplicate=False):
            parts = path.split(".")
            paths[module] = plain_name(".".join(parts[1:] if is_ddp else parts))
        found: "dict[nn.Module, str]" = {}
        for module, path in paths.items():
            reference, name = self._names.get(id(module), (None, None))
            if reference is not None and reference() is module and name is not None:
                found[module] = name
                continue
            for key, parameter in module.named_parameters(recurse=False):
                text = _print_of(parameter) if self._prints else None
                name = self._prints.get(text + key) if text is not None else None
                if name is not None:
                    found[module] = name
                    break
        self._name_containers(paths, found)
        is_moved = any(paths[module] != name for module, name in found.items())
        for module, path in paths.items():
            own: "Optional[str]" = found.get(module)
            if own is None:
                own = None if is_moved else path
            self._names[id(module)] = weakref.ref(module), own

    @staticmethod
    def _name_containers(paths, found) -> None:
        """Adds names of modules next to the found ones: if `0.norm` is `layers.2.norm`,
        then `0` is `layers.2` and `0.act` is `layers.2.act`."""
        by_path = {path: module for module, path in paths.items()}
        for module in list(found):
            path, name = paths[module], found[module]
            while path:
                outer, _, last = path.rpartition(".")
                if name != last and not name.endswith(f".{last}"):
                    break
                name = name[: -len(last)].rstrip(".")
                path = outer
                container = by_path.get(path)
                if container is None or (not path and name):
                    break
                found.setdefault(container, name)
        for module, path in paths.items():
            outer, _, last = path.rpartition(".")
            container = by_path.get(outer)
            if module not in found and path and container in found:
                found[module] = _joined(found[container], last)
