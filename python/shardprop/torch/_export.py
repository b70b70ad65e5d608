"""export(): a model as a program that can be planned, weights never touched."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .._error import Error
from .exporting import failures, metadata, program


class ExportError(Error):
    """A model that torch.export cannot export, with what to do about it."""


# The options of export(), as an explanation names them.
_OPTIONS = {
    "infer": "mode='infer'",
    "train": "mode='train'",
    "core": "composite=False",
    "loss_index": "loss_index",
}


def _explained(failure: BaseException, mode: str) -> ExportError:
    found = failures.explain(failure, _OPTIONS)
    return ExportError(
        "SP0500",
        found.message,
        f"mode={mode!r}",
        [found.cause],
        found.help or "the exception that caused this one says where",
    )


def _fake_copy(value: Any, fake_mode: FakeTensorMode, memo: dict) -> Any:
    """A deep copy whose tensors are fake, on the CPU; `value` stays as it is."""
    if isinstance(value, torch.nn.Module):
        tensors = [*value.parameters(), *value.buffers()]
    else:
        tensors = [
            leaf
            for leaf in torch.utils._pytree.tree_leaves(value)
            if isinstance(leaf, torch.Tensor)
        ]
    for tensor in tensors:
        if id(tensor) not in memo:
            memo[id(tensor)] = program.fake_like(tensor, fake_mode)
    return copy.deepcopy(value, memo)


def export(
    model: torch.nn.Module,
    args: "Sequence[Any]" = (),
    kwargs: "Optional[Mapping[str, Any]]" = None,
    *,
    mode: str = "infer",
    device: str = "cuda",
    composite: bool = False,
    dynamic_shapes: Any = None,
    loss_index: int = 0,
) -> torch.export.ExportedProgram:
    """Exports a model for planning, on fake tensors of the example inputs' sizes.

    Neither weights nor inputs are read or made: a model on the meta device does,
    and so do inputs there. The model is left as it is.

    mode="train": forward returns a scalar loss, alone or at `loss_index`; the
    program then holds forward and backward and returns the loss and the
    gradients. `device` is the one the program is planned for ("cuda" takes the
    attention kernels that CUDA would choose). `composite` keeps the operators
    as torch.export leaves them (mode="infer").

    Raises ExportError, which says what in the model stands in the way.
    """
    if mode not in ("infer", "train"):
        raise ExportError(
            "SP0001", f"mode is {mode!r}", "export()", [], "'infer' or 'train'"
        )
    if composite and mode == "train":
        raise ExportError(
            "SP0001",
            "a joint graph of forward and backward is taken apart to core ATen",
            "composite=True",
            [],
            "leave out composite, or export with mode='infer'",
        )
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    memo: dict = {}
    example = program.Example(
        _fake_copy(model, fake_mode, memo),
        tuple(_fake_copy(tuple(args), fake_mode, memo)),
        dict(_fake_copy(dict(kwargs or {}), fake_mode, memo)),
        dynamic_shapes,
    )
    example.module.train(mode == "train")
    try:
        exported = program.export_example(
            example,
            fake_mode,
            training=mode == "train",
            device=device,
            composite=composite,
            loss_index=loss_index,
        )
    except Exception as failure:  # torch raises whatever it likes
        raise _explained(failure, mode) from failure
    metadata.trim(exported)
    return exported
