"""A module and its example inputs as an ExportedProgram, weights never made."""

import contextlib
import dataclasses
import inspect
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import constants, cuda_attention, custom_functions, joint, parameters, structures


@dataclasses.dataclass
class Example:
    """A module with the inputs it is traced on.

    `dynamic_shapes` is passed to torch.export.export as it stands. A training
    example's forward returns its scalar loss, alone or first.
    """

    module: torch.nn.Module
    args: tuple = ()
    kwargs: dict = dataclasses.field(default_factory=dict)
    dynamic_shapes: Any = None


def _call_factory(factory, training):
    """Calls a factory, telling it the mode if it has a `training` parameter."""
    if "training" in inspect.signature(factory).parameters:
        made = factory(training=training)
    else:
        made = factory()
    return made if isinstance(made, Example) else Example(*made)


def fake_like(tensor, fake_mode):
    """A fake tensor or parameter of the same sizes, strides and dtype, on the CPU."""
    with fake_mode:
        like = torch.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu"
        )
        if isinstance(tensor, torch.nn.Parameter):
            like = torch.nn.Parameter(like, tensor.requires_grad)
    return like


def _as_fake(example, fake_mode):
    """Replaces every tensor of an example by a fake one on the CPU, in place."""
    memo = {}  # tied parameters stay tied

    def fake(tensor):
        if id(tensor) not in memo:
            # The tensor is held too, so that its id is not given out again.
            memo[id(tensor)] = tensor, fake_like(tensor, fake_mode)
        return memo[id(tensor)][1]

    for module in example.module.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = fake(tensor)
    example.args, example.kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor, fake, (tuple(example.args), example.kwargs)
    )


def _make_example(factory, training, fake_mode):
    # Made on the meta device and not on fake tensors right away: those refuse
    # conversions of modules such as `.to(torch.bfloat16)`.
    with torch.device("meta"):
        example = _call_factory(factory, training)
    _as_fake(example, fake_mode)
    example.module.train(training)
    return example


def export_program(
    factory, *, training, device="cpu", composite=False, loss_index=0
):
    """Exports what `factory` makes, on fake tensors; see export_example()."""
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    return export_example(
        _make_example(factory, training, fake_mode),
        fake_mode,
        training=training,
        device=device,
        composite=composite,
        loss_index=loss_index,
    )


def export_example(
    example, fake_mode, *, training, device="cpu", composite=False, loss_index=0
):
    """Exports an example of fake tensors.

    `composite` leaves the graph as torch.export.export writes it; otherwise it
    is taken apart to core ATen. With `device="cuda"` attention becomes the
    kernel that CUDA would choose.
    """
    with contextlib.ExitStack() as stack:
        if training:
            stack.enter_context(custom_functions.kept())
        return _exported(
            example, fake_mode, training, device, composite, loss_index
        )


def _exported(example, fake_mode, training, device, composite, loss_index):
    with fake_mode, torch.set_grad_enabled(training):
        program = torch.export.export(
            example.module,
            example.args,
            example.kwargs,
            dynamic_shapes=example.dynamic_shapes,
            strict=False,
        )
    parameters.merge_tied(program)
    if device == "cuda" and not composite:
        cuda_attention.choose_kernels(program)
    if training:
        taken = constants.set_aside(program)
        loss_index = taken.without(loss_index)
        parameters.freeze_unreached(program, loss_index)
        parameters.detach_outputs(program, loss_index)
        joined = structures.kept(
            lambda flat: joint.export_forward_backward(flat, loss_index), program
        )
        taken.put_back(joined)
        return joined
    if composite:
        return program
    return structures.kept(lambda flat: flat.run_decompositions(), program)
