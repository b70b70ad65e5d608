"""export() turns a model into a program that can be planned. It never reads weights."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .._error import Error
from .exporting import failures, metadata, program


class ExportError(Error):
    """torch.export cannot export the model; `help` says how to change it."""


# These are the options of export() by the names that an explanation uses.
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
        [found.cause, *([f"at {found.line}"] if found.line else [])],
        found.help or "the exception that caused this one says where",
    )


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
    separate_pieces: bool = False,
) -> torch.export.ExportedProgram:
    """Exports a model for planning, with fake tensors of the example inputs' sizes.

    Weights and inputs are neither read nor allocated, so both may be on the meta
    device. The model is unchanged.

    With mode="train", forward returns a scalar loss, alone or at `loss_index`. The
    program then holds forward and backward and returns the loss and the gradients.
    `device` is the device of the planned program ("cuda" gives the attention kernels
    that CUDA would choose). `composite` keeps the operators of torch.export
    (mode="infer").

    `separate_pieces` splits the weight of a fused projection instead of its result, if
    the pieces have unequal sizes, as queries, keys and values have if there are fewer
    key heads. Each piece may then have a layout of its own, but they are matmuls of
    their own, too. Equal pieces need no such change. The result must be divided by
    split_with_sizes or by slices of its last dim, and have no other use. If nothing
    is split, there is a warning.

    Raises ExportError, which names the part of the model that prevents the export.
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
    if composite and separate_pieces:
        raise ExportError(
            "SP0001",
            "the pieces of a projection are separated in core ATen",
            "composite=True",
            [],
            "leave out composite or separate_pieces",
        )
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    example = program.fake_example(
        program.Example(model, tuple(args), dict(kwargs or {}), dynamic_shapes),
        fake_mode,
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
            separate_pieces=separate_pieces,
        )
    except Exception as failure:  # torch raises whatever it likes
        raise _explained(failure, mode) from failure
    metadata.trim(exported)
    return exported
