"""export(): a model as a program that can be planned, weights never touched."""

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
        )
    except Exception as failure:  # torch raises whatever it likes
        raise _explained(failure, mode) from failure
    metadata.trim(exported)
    return exported
