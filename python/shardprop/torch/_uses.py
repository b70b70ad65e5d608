"""These checks turn each unsupported use of a planned module into an error or a note.

The module's program has fixed dtypes, devices and training mode. Checks run before the
program, equally on every rank, so that no rank waits for a failed one.
"""

import warnings
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from .._error import Error


def error(message: str, notes: "list[str]", help: str, place: str = "module") -> Error:
    return Error("SP0001", message, place, notes, help)


def note(text: str, stacklevel: int = 3) -> None:
    """Gives a Python warning; each text appears once a place."""
    warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)


def check_mode(module: nn.Module, trains: bool, *, differs: bool) -> None:
    """Checks train() or eval(). `differs` means that the program draws random numbers
    or writes statistics."""
    if module.training == trains:
        return
    asked, made = ("train", "infer") if module.training else ("infer", "train")
    help = f"export with mode={asked!r}, and parallelize that program"
    if trains and differs:
        raise error(
            "eval() does not change the program, which was exported for training",
            ["it applies dropout, or updates statistics such as batch norm's"],
            f"{help}; state_dict() of this module fits that one",
        )
    note(
        f"the program was exported with mode={made!r}; {asked!r} is asked for, and "
        f"{'no gradients are left' if asked == 'train' else 'it runs all the same'}. "
        + help,
        stacklevel=4,
    )


def check_hooks(module: nn.Module) -> None:
    """Refuses hooks that would not run. Submodules hold tensors and are never called,
    and a backward hook does not run on the module either."""
    for name, sub in module.named_modules():
        if name.split(".")[0] == "_runner":
            continue
        hooks = [sub._backward_hooks, sub._backward_pre_hooks]
        if sub is not module:
            hooks += [sub._forward_hooks, sub._forward_pre_hooks]
        if any(hooks):
            raise error(
                f"a hook of {f'`{name}`' if name else 'the module'} would not run",
                ["the module runs one program: it calls no submodule, and no autograd"],
                "hook the module itself (forward hooks) or a parameter's gradient "
                "(register_hook, register_post_accumulate_grad_hook)",
            )


def check_tensor(
    name: str, value: Any, dtype: torch.dtype, device: torch.device, layout: tuple
) -> None:
    """Raises an error unless a parameter or buffer has the program's dtype, device and
    layout."""
    if not isinstance(value, DTensor):
        raise error(
            f"`{name}` is a {type(value).__name__}, not a DTensor",
            [],
            "write into the parameter in place of replacing it",
        )
    if value.dtype != dtype:
        raise _another(name, "dtype", value.dtype, dtype)
    if value.device.type != device.type:
        raise _another(name, "device", value.device, device)
    if tuple(value.placements) != layout:
        raise _another(name, "layout", value.placements, layout)


def _another(name: str, what: str, found: Any, planned: Any) -> Error:
    return error(
        f"`{name}` has another {what} than the program takes",
        [f"found: {found}", f"program: {planned}"],
        f"leave the {what} of the planned module as it is: convert the model, "
        "export it and plan again",
    )


def check_conversion(module: nn.Module, convert: Any) -> None:
    """Refuses changes of dtype and device by nn.Module.to() and similar methods. They
    call `convert` on each tensor."""
    seen = set()
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        local = value.to_local() if isinstance(value, DTensor) else value
        kind = local.dtype, local.device
        if kind in seen:
            continue
        seen.add(kind)
        with torch.no_grad():
            converted = convert(torch.empty(0, dtype=local.dtype, device=local.device))
        if converted.dtype != local.dtype:
            raise _another(name, "dtype", converted.dtype, local.dtype)
        if converted.device != local.device:
            raise _another(name, "device", converted.device, local.device)


def check_frozen(name: str, value: torch.Tensor, is_trained: bool) -> None:
    if value.requires_grad and not is_trained:
        raise error(
            f"`{name}` requires a gradient, and the program computes none",
            ["it was exported without"],
            "let it require a gradient in the model, export and plan again",
        )


def with_hooks(target: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Runs the hooks of register_hook(), and returns the gradient after them."""
    for hook in (target._backward_hooks or {}).values():
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    return gradient


def run_accumulated(target: torch.Tensor) -> None:
    """Runs the hooks of register_post_accumulate_grad_hook()."""
    for hook in (getattr(target, "_post_accumulate_grad_hooks", None) or {}).values():
        hook(target)
