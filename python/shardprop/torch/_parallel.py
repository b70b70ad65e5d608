"""parallelize(): a planned program as a module, each rank running its part."""

import copy
import json
from typing import Any, Optional, Union

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from .. import _core
from .._error import Error
from .._graph import load_graph
from .._plan import Plan
from . import (
    _calling,
    _constants,
    _count,
    _failures,
    _groups,
    _layout,
    _load,
    _weights,
)


# Attributes of a module that the model's own names may hide.
_OWN = ("plan", "device_mesh", "seed", "program", "input_metas")


class ParallelModule(nn.Module):
    """This rank's part of a planned program.

    Parameters and buffers are DTensors under their own names, laid out as the
    plan says; they begin as zeros (load_weights() fills them), but for constants
    made in forward, whose values the program carries. Calling the
    module runs the program: in training it returns the loss and leaves each
    parameter's gradient in `.grad`, so that any optimizer of PyTorch goes on.

    It is called as the model was, and returns what the model does, in the same
    structure. Inputs may be whole tensors, of which each rank takes its part, or
    DTensors; what the model writes into them is written. Outputs but the loss are
    DTensors. Of a Graph nothing but the tensors is known: it takes them one by one,
    and returns one, or a tuple.

    A tensor or submodule of the model hides the module's own attribute of the same
    name (`plan`, `device_mesh`, `seed`, `program`, `input_metas`).
    """

    plan: Plan
    device_mesh: Any
    #: Changes with every call; the same on all ranks.
    seed: int
    #: What this rank runs; each node's meta["custom"]["shardprop"] says the node of
    #: the graph that it runs for, and the copy that it makes.
    program: torch.export.ExportedProgram
    #: Of the whole inputs, in the order in which forward() takes them.
    input_metas: "list[tuple[torch.Size, torch.dtype]]"

    def __init__(
        self, program, shardings, convention, plan, device_mesh, device, compile
    ):
        super().__init__()
        self._plan = plan
        self._device_mesh = device_mesh
        self._seed = 0
        self._program = program
        self._shardings = shardings
        self._mesh = ",".join(
            f"{dim['name']}={dim['size']}" for dim in shardings["mesh"]["dims"]
        )
        self._sizes = {
            dim["name"]: dim["size"] for dim in shardings["mesh"]["dims"]
        }
        ranks = _groups.mesh_ranks(device_mesh)
        self._index = ranks.index(torch.distributed.get_rank())
        self._device = str(torch.device(device))
        self._compiled = compile
        self._set_runner()
        self._users = []
        # By name, in a program that trains; the others are frozen.
        self._trained = {
            entry["target"]
            for entry in shardings["outputs"]
            if entry["kind"] == "gradient"
        }
        self._carried = frozenset()
        # A plain module takes the names that a model can have; here some are taken.
        root = nn.Module()
        for entry in shardings["inputs"]:
            if entry["kind"] in ("parameter", "buffer", "constant"):
                self._add_tensor(root, entry, device)
            elif entry["kind"] == "user_input":
                self._users.append(entry)
            elif entry["kind"] != "seed":
                raise Error(
                    "SP0709",
                    "the plan holds an optimizer's step",
                    "plan",
                    [f"it takes {entry['name']}"],
                    "plan with optimizer='none': any optimizer of PyTorch takes "
                    "the gradients",
                )
        self._parameters.update(root._parameters)
        self._buffers.update(root._buffers)
        self._modules.update(root._modules)
        names = [entry["name"] for entry in self._users]
        returned = [e for e in shardings["outputs"] if e["kind"] in ("loss", "user")]
        self._convention = convention or _calling.flat(names, len(returned))

    @property
    def _input_metas(self) -> "list[tuple[torch.Size, torch.dtype]]":
        return [
            (torch.Size(entry["shape"]), _layout.DTYPES[entry["dtype"]])
            for entry in self._users
        ]

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in _OWN:
                raise
        return getattr(self, f"_{name}")

    def __setattr__(self, name, value):
        is_own = name in _OWN and not any(
            name in self.__dict__.get(held, ())
            for held in ("_parameters", "_buffers", "_modules")
        )
        super().__setattr__(f"_{name}" if is_own else name, value)

    def __deepcopy__(self, memo):
        """Copies the tensors; what never changes is shared."""
        shared = (self._program, self._plan, self._device_mesh, self._shardings)
        for value in (*shared, self._convention, self._modules["_runner"]):
            memo[id(value)] = value
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        nn.Module.__setstate__(copied, copy.deepcopy(self.__dict__, memo))
        return copied

    def __getstate__(self):
        """Everything but the runner; the program as torch.export.save() writes it."""
        state = dict(self.__dict__)
        state["_modules"] = dict(self._modules)
        del state["_modules"]["_runner"]
        state["_program"] = _load.dump(self._program)
        return state

    def __setstate__(self, state):
        """Every rank reads the part that it wrote, with its process groups made."""
        super().__setstate__(state)
        self._program = _load.load(self._program)
        _groups.check_mesh(self._shardings["mesh"], self._device_mesh)
        _groups.register_groups(self._shardings["groups"], self._device_mesh)
        self._set_runner()

    def _set_runner(self):
        _place_on(self._program.graph_module, torch.device(self._device))
        runner = self._program.graph_module
        self._runner = torch.compile(runner) if self._compiled else runner

    def _local_shape(self, entry):
        shapes = entry["local_shapes"]
        return shapes[0] if len(shapes) == 1 else shapes[self._index]

    def _dtensor(self, local, entry):
        stride = torch.empty(entry["shape"], device="meta").stride()
        return DTensor.from_local(
            local,
            self._device_mesh,
            _layout.placements(entry, self._sizes),
            run_check=False,
            shape=torch.Size(entry["shape"]),
            stride=stride,
        )

    def _add_tensor(self, root, entry, device):
        local = torch.zeros(
            self._local_shape(entry),
            dtype=_layout.DTYPES[entry["dtype"]],
            device=device,
        )
        value = self._dtensor(local, entry)
        *path, name = entry["name"].split(".")
        owner = root
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
        if entry["kind"] == "parameter":
            dtype = local.dtype
            trains = dtype.is_floating_point or dtype.is_complex
            if self._trained:
                trains = entry["name"] in self._trained
            owner.register_parameter(name, nn.Parameter(value, trains))
        else:
            owner.register_buffer(name, value)

    def _tensor(self, name):
        *path, last = name.split(".")
        owner = self
        for part in path:
            owner = owner._modules[part]
        found = owner._parameters.get(last)
        return owner._buffers[last] if found is None else found

    def _local_input(self, value, entry):
        if isinstance(value, DTensor):
            wanted = _layout.placements(entry, self._sizes)
            return value.redistribute(self._device_mesh, wanted).to_local()
        if tuple(value.shape) != tuple(entry["shape"]):
            raise Error(
                "SP0001",
                f"`{entry['name']}` is of shape {list(value.shape)}",
                "forward()",
                [f"planned for: {entry['shape']}"],
                "give the whole tensor, or plan for this size",
            )
        return _layout.local_part(value, entry, self._mesh, self._index)

    def _arguments(self, users):
        given = iter(users)
        locals_ = []
        for entry in self._shardings["inputs"]:
            if entry["kind"] == "user_input":
                locals_.append(self._local_input(next(given), entry).contiguous())
            elif entry["kind"] == "seed":
                locals_.append(torch.tensor(self._seed))
            else:
                locals_.append(self._tensor(entry["name"]).to_local().detach())
        return locals_

    @_failures.explained()
    def forward(self, *args, **kwargs):
        users = self._convention.tensors(args, kwargs)
        locals_ = self._arguments(users)
        with torch.no_grad():
            results = _count.run_counted(
                self._program.graph_module, self._runner, locals_, self._index
            )
        self._seed += 1
        returned = []
        with torch.no_grad():
            for entry, local in zip(self._shardings["outputs"], results):
                if entry["kind"] == "gradient":
                    self._set_gradient(entry, local)
                elif entry["kind"] == "update":
                    self._update(entry, local, users)
                elif entry["kind"] == "loss":
                    returned.append(self._dtensor(local, entry).full_tensor())
                else:
                    returned.append(self._dtensor(local, entry))
        return self._convention.structured(returned)

    def _update(self, entry, local, users):
        """Writes what the model wrote in place: a buffer, or an input."""
        names = [user["name"] for user in self._users]
        if entry["target"] not in names:
            self._tensor(entry["target"]).to_local().copy_(local)
            return
        given = users[names.index(entry["target"])]
        written = self._dtensor(local, entry)
        if isinstance(given, DTensor):
            written = written.redistribute(placements=given.placements)
            given.to_local().copy_(written.to_local())
        else:
            given.copy_(written.full_tensor())

    def _set_gradient(self, entry, local):
        target = self._tensor(entry["target"])
        gradient = self._dtensor(local, entry)
        if gradient.placements != target.placements:
            gradient = gradient.redistribute(placements=target.placements)
        if target.grad is None:
            target.grad = gradient
        else:
            target.grad += gradient


def _place_on(graph_module, device):
    """Has what the program makes made on a device, whichever it was exported for."""
    for node in graph_module.graph.nodes:
        if node.kwargs.get("device") is not None:
            node.update_kwarg("device", device)
    graph_module.recompile()


def _constants_of(shardings, exported):
    """What no state dict has: constants, and buffers that are not persistent."""
    values = _constants.carried(exported)
    persistent = getattr(exported, "state_dict", {})
    return {
        entry["name"]: values[entry["name"]]
        for entry in shardings["inputs"]
        if entry["kind"] in ("buffer", "constant")
        and entry["name"] in values
        and entry["name"] not in persistent
    }


def parallelize(
    exported: Any,
    plan: Plan,
    device_mesh: Any,
    *,
    device: Optional[Union[str, torch.device]] = None,
    compile: bool = False,
) -> ParallelModule:
    """The module that runs a plan on a torch DeviceMesh (gloo or NCCL).

    `exported` is the program that was planned: an ExportedProgram, a path or a
    graph. All ranks of the mesh call this together. `compile` puts the local
    program through torch.compile. Constants made in forward get their values from
    an ExportedProgram or a .pt2 file; a bare .json has none (load_weights() takes
    them).

    Raises Error: a plan for another program or mesh, an optimizer in the plan,
    another release of torch. Calling the module raises Error if a rank is lost.
    """
    graph = exported if isinstance(exported, _core.Graph) else load_graph(exported)
    lowered = _core.lower(plan._core, graph)
    shardings = json.loads(lowered.shardings())
    _groups.check_mesh(shardings["mesh"], device_mesh)
    _groups.register_groups(shardings["groups"], device_mesh)
    ranks = _groups.mesh_ranks(device_mesh)
    index = ranks.index(torch.distributed.get_rank())
    archive = lowered.rank_program(shardings["mesh"]["ranks"][index])
    program = _load.load(archive)
    module = ParallelModule(
        program,
        shardings,
        _calling.of(exported),
        plan,
        device_mesh,
        device or device_mesh.device_type,
        compile,
    )
    constants = _constants_of(shardings, exported)
    module._carried = frozenset(constants)
    _weights.fill(module, constants, strict=False)
    return module
