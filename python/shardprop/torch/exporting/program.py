"""This module exports a module and its example inputs without allocating weights."""

import contextlib
import copy
import dataclasses
import inspect
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from . import (
    checkpoints,
    constants,
    cuda_attention,
    custom_functions,
    grouped_matmuls,
    held_tensors,
    joint,
    parameters,
    projections,
    structures,
)


@dataclasses.dataclass
class Example:
    """A module with the inputs it is traced on.

    `dynamic_shapes` is passed to torch.export.export unchanged. A training example's
    forward returns its scalar loss, alone or first.
    """

    module: torch.nn.Module
    args: tuple = ()
    kwargs: dict = dataclasses.field(default_factory=dict)
    dynamic_shapes: Any = None
    # Names for tensors outside of parameters and buffers, by id.
    held: dict = dataclasses.field(default_factory=dict)


def _call_factory(factory, training):
    """Calls a factory, and passes the mode if it has a `training` parameter."""
    if "training" in inspect.signature(factory).parameters:
        made = factory(training=training)
    else:
        made = factory()
    return made if isinstance(made, Example) else Example(*made)


def fake_like(tensor, fake_mode):
    """Returns a fake tensor or parameter of the same sizes, strides and dtype, on the
    CPU."""
    with fake_mode:
        like = torch.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu"
        )
        if isinstance(tensor, torch.nn.Parameter):
            like = torch.nn.Parameter(like, tensor.requires_grad)
    return like


class _Copied(TorchFunctionMode):
    """Makes deepcopy() share tensors with values, and replace the others by fake
    ones."""

    def __init__(self, fake_mode):
        super().__init__()
        self._fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not torch.Tensor.__deepcopy__:
            return func(*args, **(kwargs or {}))
        tensor, memo = args
        copied = tensor
        if held_tensors.has_no_values(tensor):
            copied = fake_like(tensor, self._fake_mode)
        memo[id(tensor)] = copied
        return copied


def _fake_module(module, fake_mode):
    """Returns a deep copy with fake tensors on the CPU; tied tensors remain tied.
    Tensors outside of parameters and buffers keep their values."""
    memo = {}
    for tensor in (*module.parameters(), *module.buffers()):
        memo[id(tensor)] = fake_like(tensor, fake_mode)
    with _Copied(fake_mode):
        return copy.deepcopy(module, memo)


def fake_example(example, fake_mode):
    """Returns a copy of the example with fake tensors.

    Each input gets a tensor of its own. If a tensor is given twice, for example as ids
    and as labels, torch.export would make one input.
    """
    module = _fake_module(example.module, fake_mode)
    held = held_tensors.hold(module)
    args, kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor,
        lambda tensor: fake_like(tensor, fake_mode),
        (tuple(example.args), dict(example.kwargs)),
    )
    return Example(module, args, kwargs, example.dynamic_shapes, held)


def _make_example(factory, training, fake_mode):
    # The model is made on the meta device first, since fake tensors refuse conversions
    # of modules such as `.to(torch.bfloat16)`.
    with torch.device("meta"):
        example = _call_factory(factory, training)
    example = fake_example(example, fake_mode)
    example.module.train(training)
    return example


def export_program(
    factory,
    *,
    training,
    device="cpu",
    composite=False,
    loss_index=0,
    separate_pieces=False,
):
    """Exports the example of `factory` on fake tensors; see export_example()."""
    fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    return export_example(
        _make_example(factory, training, fake_mode),
        fake_mode,
        training=training,
        device=device,
        composite=composite,
        loss_index=loss_index,
        separate_pieces=separate_pieces,
    )


def export_example(
    example,
    fake_mode,
    *,
    training,
    device="cpu",
    composite=False,
    loss_index=0,
    separate_pieces=False,
):
    """Exports an example whose tensors are fake.

    With `composite` the graph is that of torch.export.export; otherwise it is
    decomposed to core ATen. With `device="cuda"` attention becomes the kernel that CUDA
    would choose. With `separate_pieces` the weight of a fused projection is split, if
    its pieces have unequal sizes.
    """
    with contextlib.ExitStack() as stack:
        if training:
            stack.enter_context(custom_functions.kept())
            stack.enter_context(checkpoints.marked())
        program = _traced(example, fake_mode, training)
        if separate_pieces:
            projections.separate_unequal(program)
        if device == "cuda" and not composite:
            cuda_attention.choose_kernels(program)
        return _decomposed(program, training, composite, loss_index)


def _traced(example, fake_mode, training):
    with fake_mode, torch.set_grad_enabled(training):
        program = torch.export.export(
            example.module,
            example.args,
            example.kwargs,
            dynamic_shapes=example.dynamic_shapes,
            strict=False,
        )
    parameters.merge_tied(program)
    held_tensors.written_constants_as_buffers(program, example.held)
    return program


def _decomposed(program, training, composite, loss_index):
    if training:
        taken = constants.set_aside(program)
        loss_index = taken.without(loss_index)
        parameters.freeze_unreached(program, loss_index)
        parameters.detach_outputs(program, loss_index)
        joined = structures.kept(
            lambda flat: joint.export_forward_backward(flat, loss_index), program
        )
        taken.put_back(joined)
        grouped_matmuls.as_aten(joined)
        return joined
    if not composite:
        program = structures.kept(lambda flat: flat.run_decompositions(), program)
    grouped_matmuls.as_aten(program)
    return program
