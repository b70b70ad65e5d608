"""Operands converts the tensors of a call between DTensor's and our propagator's
form."""

from typing import Any, Optional

import torch
from torch.distributed.tensor import Replicate
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._op_schema import OpSchema

from . import _redistribution
from ._layout import DTYPES
from ._local_call import whole_spec
from ._specs import MeshSpecs, NotOurs, NotReassembled, dtype_name, is_lost


class Operands:
    """The tensors of a call, in declared order, with the place of each."""

    def __init__(self, op_schema: OpSchema):
        self.op = op_schema.op
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
        """Returns the mesh of all tensors. Raises SeveralMeshes if they are on
        several."""
        mesh = self.specs[0].mesh
        for spec in self.specs:
            if spec.mesh != mesh:
                raise SeveralMeshes(
                    f"its tensors are on several meshes: {_mesh_text(mesh)} and "
                    f"{_mesh_text(spec.mesh)}. Bring them to one mesh first: "
                    "DTensor.full_tensor(), then distribute_tensor()"
                )
        return mesh

    def gathering(self) -> "dict[int, _redistribution.Walk]":
        """Returns for each sharded operand the walk that makes it replicated."""
        moves = {}
        for index, spec in enumerate(self.specs):
            if any(not p.is_replicate() for p in spec.placements):
                require_reassembled(spec)
                whole = whole_spec(spec.mesh, spec.tensor_meta)
                moves[index] = _redistribution.Walk([spec, whole])
        return moves

    def ours(self, specs: MeshSpecs, at: "list[DTensorSpec]"):
        """Returns the arguments for our propagator, with the specs `at` for the
        tensors."""
        tensors = iter(at)
        args = [_ours(value, specs, tensors) for value in self.args]
        names = [a.name for a in self.op._schema.arguments if a.name in self.kwargs]
        kwargs = {n: _ours(self.kwargs[n], specs, tensors) for n in names}
        return args, kwargs

    def is_written(self, operand: int) -> bool:
        """Returns whether the call writes into the operand."""
        where, _ = self.slots[operand]
        arguments = self.op._schema.arguments
        found = [
            argument
            for position, argument in enumerate(arguments)
            if where in (position, argument.name)
        ]
        return any(a.alias_info is not None and a.alias_info.is_write for a in found)

    def gathered_over(self, mesh_dims) -> "Optional[list[DTensorSpec]]":
        """Returns the specs with these mesh dims replicated, or None. It is None
        if no spec changes, or if one changes that the call writes."""
        specs = []
        for operand, spec in enumerate(self.specs):
            placements = tuple(
                Replicate() if mesh_dim in mesh_dims else placement
                for mesh_dim, placement in enumerate(spec.placements)
            )
            if placements == spec.placements:
                specs.append(spec)
            elif self.is_written(operand):
                return None
            else:
                meta = spec.tensor_meta
                specs.append(DTensorSpec(spec.mesh, placements, tensor_meta=meta))
        return specs if specs != self.specs else None


class SeveralMeshes(NotOurs):
    """The tensors of a call are on several meshes."""


def require_reassembled(spec: DTensorSpec) -> None:
    """Raises NotReassembled: DTensor cannot move a tensor of this spec."""
    if is_lost(spec):
        raise NotReassembled(
            f"DTensor cannot reassemble {spec.placements} of "
            f"{list(spec.tensor_meta.shape)}"
        )


def _mesh_text(mesh) -> str:
    """dp=2,tp=4 of ranks 0 to 7."""
    names = mesh.mesh_dim_names or [f"d{i}" for i in range(mesh.ndim)]
    dims = ",".join(f"{name}={size}" for name, size in zip(names, mesh.shape))
    ranks = mesh.mesh.flatten().tolist()
    if ranks == list(range(ranks[0], ranks[0] + len(ranks))):
        return f"{dims} (ranks {ranks[0]} to {ranks[-1]})"
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f"{dims} (ranks {shown})"


def _ours(value: Any, specs: MeshSpecs, tensors) -> Any:
    """Returns an argument for our propagator, with the next of `tensors` for each
    tensor."""
    if isinstance(value, DTensorSpec):
        return specs.ours(next(tensors))
    if isinstance(value, (list, tuple)):
        return [_ours(item, specs, tensors) for item in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    raise NotOurs(f"an argument is a {type(value).__name__}")


def output_spec_of(op, found, specs):
    """Returns the specs that DTensor expects next to the local results."""
    made = []
    for shape, strides, dtype, layout in found.outputs:
        if dtype not in DTYPES:
            raise NotOurs(f"a result is of {dtype}")
        meta = TensorMeta(torch.Size(shape), tuple(strides), DTYPES[dtype])
        made.append(specs.theirs(layout, meta))
    returns = op._schema.returns
    kinds = [str(r.type) for r in returns]
    # Numbers are computed from full tensors, so every rank returns its own.
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
