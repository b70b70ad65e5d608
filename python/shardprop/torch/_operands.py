"""The tensors of a call, as our propagator takes them and as DTensor expects them."""

from typing import Any

import torch
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._op_schema import OpSchema

from . import _redistribution
from ._layout import DTYPES
from ._local_call import whole_spec
from ._specs import MeshSpecs, NotOurs, dtype_name


class Operands:
    """The tensors of a call, in declared order, and where each stands."""

    def __init__(self, op_schema: OpSchema):
        self.args = op_schema.args_schema
        self.kwargs = op_schema.kwargs_schema
        self.specs: "list[DTensorSpec]" = []
        self.slots: "list[tuple]" = []
        for position, value in enumerate(self.args):
            self._add(position, value)
        for argument in op_schema.op._schema.arguments:
            if argument.name in self.kwargs:
                self._add(argument.name, self.kwargs[argument.name])

    def _add(self, where, value):
        if isinstance(value, DTensorSpec):
            self.specs.append(value)
            self.slots.append((where, None))
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                if isinstance(item, DTensorSpec):
                    self.specs.append(item)
                    self.slots.append((where, index))

    def mesh(self):
        """The one that all of them are on."""
        mesh = self.specs[0].mesh
        if any(spec.mesh != mesh for spec in self.specs):
            raise RuntimeError("the tensors of an operator are on several meshes")
        return mesh

    def gathering(self) -> "dict[int, _redistribution.Walk]":
        """What makes each of them whole."""
        moves = {}
        for index, spec in enumerate(self.specs):
            if any(not p.is_replicate() for p in spec.placements):
                whole = whole_spec(spec.mesh, spec.tensor_meta)
                moves[index] = _redistribution.Walk([spec, whole])
        return moves

    def ours(self, specs: MeshSpecs):
        args = [_ours(value, specs) for value in self.args]
        kwargs = {name: _ours(value, specs) for name, value in self.kwargs.items()}
        return args, kwargs


def _ours(value: Any, specs: MeshSpecs) -> Any:
    """An argument as our propagator takes it."""
    if isinstance(value, DTensorSpec):
        return specs.ours(value)
    if isinstance(value, (list, tuple)):
        return [_ours(item, specs) for item in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    raise NotOurs(f"an argument is a {type(value).__name__}")


def output_spec_of(op, found, specs):
    """What DTensor expects beside the local results."""
    made = []
    for shape, strides, dtype, layout in found.outputs:
        if dtype not in DTYPES:
            raise NotOurs(f"a result is of {dtype}")
        meta = TensorMeta(torch.Size(shape), tuple(strides), DTYPES[dtype])
        made.append(specs.theirs(layout, meta))
    returns = op._schema.returns
    kinds = [str(r.type) for r in returns]
    # Numbers come from whole tensors: every rank returns its own.
    if all("Tensor" not in kind for kind in kinds):
        return None
    if any("Tensor" not in kind for kind in kinds):
        raise NotOurs("it returns something that is not a tensor")
    if len(kinds) == 1 and kinds[0] == "Tensor":
        if len(made) != 1:
            raise NotOurs("its result is not produced")
        return made[0]
    if len(kinds) == 1:
        return tuple(made)
    if any(kind != "Tensor" for kind in kinds):
        raise NotOurs("it returns a list among others")
    return tuple(None if at < 0 else made[at] for at in found.output_slots)
