"""parallelize() turns a planned program into a module; each rank runs its part."""

import copy
import hashlib
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
    _agreement,
    _calling,
    _constants,
    _count,
    _failures,
    _groups,
    _layout,
    _load,
    _loss,
    _uses,
    _weights,
)


# Attributes of a module that the model's own names may hide.
_OWN = ("plan", "device_mesh", "seed", "program", "input_metas")


class ParallelModule(nn.Module):
    """A ParallelModule is this rank's part of a planned program.

    Parameters and buffers are DTensors under their own names, in their planned layouts.
    They begin as zeros, and load_weights() fills them. Constants made in forward have
    their values from the program. A call of the module runs the program. In training it
    returns the loss and leaves each parameter's gradient in `.grad` for any optimizer
    of PyTorch. The program includes the backward pass, so backward() of the loss is an
    error. Under no_grad() the gradients are dropped, with a note.

    The module is called like the model and returns the same structure. Inputs may be
    DTensors, or full tensors from which each rank takes its part. If the model writes
    into an input, the module writes it too. All outputs except the loss are DTensors. A
    Graph has no structure: its module takes tensors one by one, and returns one tensor
    or a tuple.

    A tensor or submodule of the model hides the module's own attribute of the same
    name (`plan`, `device_mesh`, `seed`, `program`, `input_metas`).
    """

    plan: Plan
    device_mesh: Any
    #: Changes with every call; the same on all ranks.
    seed: int
    #: The program of this rank. Each node's meta["custom"]["shardprop"] names the node
    #: of the graph that it runs for, and the copy that it makes.
    program: torch.export.ExportedProgram
    #: Sizes and dtypes of the full inputs, in the order of forward()'s arguments.
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
        # Names of the trained parameters, in a program that trains; the others are
        # frozen.
        self._trained = {
            entry["target"]
            for entry in shardings["outputs"]
            if entry["kind"] == "gradient"
        }
        self._carried = frozenset()
        # A plain module accepts all names that a model can have; some are reserved
        # here.
        root = nn.Module()
        for entry in shardings["inputs"]:
            if entry["kind"] in ("parameter", "buffer", "constant"):
                self._add_tensor(root, entry, device)
            elif entry["kind"] == "user_input":
                self._users.append(entry)
        self._parameters.update(root._parameters)
        self._buffers.update(root._buffers)
        self._modules.update(root._modules)
        names = [entry["name"] for entry in self._users]
        returned = [e for e in shardings["outputs"] if e["kind"] in ("loss", "user")]
        self._convention = convention or _calling.flat(names, len(returned))
        # These flags say whether the program holds a backward pass, and whether it
        # differs from the model in eval() because it draws random numbers or writes
        # statistics.
        self._trains = any(e["kind"] == "gradient" for e in shardings["outputs"])
        self._trains_only = any(
            e["kind"] == "seed" for e in shardings["inputs"]
        ) or any(
            e["kind"] == "update" and e["target"] not in names
            for e in shardings["outputs"]
        )
        self._kept = [
            (
                entry["name"],
                _layout.DTYPES[entry["dtype"]],
                _layout.placements(entry, self._sizes),
            )
            for entry in shardings["inputs"]
            if entry["kind"] in ("parameter", "buffer", "constant")
        ]
        self.train(self._trains)

    def _apply(self, fn, recurse=True):
        _uses.check_conversion(self, fn)
        return super()._apply(fn, recurse)

    def _check_use(self):
        """Raises an error before the program runs, equally on every rank."""
        _uses.check_mode(self, self._trains, differs=self._trains_only)
        _uses.check_hooks(self)
        device = torch.device(self._device)
        for name, dtype, layout in self._kept:
            value = self._tensor(name)
            _uses.check_tensor(name, value, dtype, device, layout)
            if self._trains:
                _uses.check_frozen(name, value, name in self._trained)
        if self._trains and not torch.is_grad_enabled():
            _uses.note(
                "the program computes gradients under no_grad(), too, and drops them: "
                "export with mode='infer' for evaluation"
            )

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
        """Copies the tensors and shares the immutable parts."""
        shared = (self._program, self._plan, self._device_mesh, self._shardings)
        for value in (*shared, self._convention, self._modules["_runner"]):
            memo[id(value)] = value
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        nn.Module.__setstate__(copied, copy.deepcopy(self.__dict__, memo))
        return copied

    def __getstate__(self):
        """Returns all attributes but the runner; the program is in the form of
        torch.export.save()."""
        state = dict(self.__dict__)
        state["_modules"] = dict(self._modules)
        del state["_modules"]["_runner"]
        state["_program"] = _load.dump(self._program)
        return state

    def __setstate__(self, state):
        """Reads the part that this rank wrote. The process groups must exist before."""
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
        self._check_input(value, entry)
        if isinstance(value, DTensor):
            wanted = _layout.placements(entry, self._sizes)
            return value.redistribute(self._device_mesh, wanted).to_local()
        return _layout.local_part(value, entry, self._mesh, self._index)

    def _check_input(self, value, entry):
        name, dtype = entry["name"], _layout.DTYPES[entry["dtype"]]
        if tuple(value.shape) != tuple(entry["shape"]):
            fixed = [
                f"{guard['condition']} in the example inputs ({guard['origin']})"
                for guard in self._plan.data["guards"]
                if guard["origin"].startswith("dim ")
                and guard["origin"].endswith(f" of {name}")
            ]
            raise _uses.error(
                f"`{name}` is of shape {list(value.shape)}",
                [f"planned for: {entry['shape']}", *fixed],
                "give the whole tensor (DTensor.from_local() makes one of the ranks' "
                "parts); or export with inputs of this size, and plan again",
                "forward()",
            )
        if value.dtype != dtype:
            raise _uses.error(
                f"`{name}` is of dtype {value.dtype}",
                [f"planned for: {dtype}"],
                "convert it, or export with inputs of this dtype, and plan again",
                "forward()",
            )

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
        self._check_use()
        users = self._convention.tensors(args, kwargs)
        leaves_gradients = torch.is_grad_enabled()
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
                    if leaves_gradients:
                        self._set_gradient(entry, local)
                elif entry["kind"] == "update":
                    self._update(entry, local, users)
                elif entry["kind"] == "loss":
                    loss = self._dtensor(local, entry).full_tensor()
                    returned.append(_loss.loss_of(loss))
                else:
                    returned.append(self._dtensor(local, entry))
        return self._convention.structured(returned)

    def _update(self, entry, local, users):
        """Writes the result of an in-place write of the model into a buffer or an
        input."""
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
        if not target.requires_grad:
            return
        gradient = self._dtensor(local, entry)
        if gradient.placements != target.placements:
            gradient = gradient.redistribute(placements=target.placements)
        gradient = _uses.with_hooks(target, gradient)
        if target.grad is None:
            target.grad = gradient
        else:
            target.grad += gradient
        _uses.run_accumulated(target)


def _place_on(graph_module, device):
    """Makes the program create its tensors on `device`, not on the device of the
    export."""
    for node in graph_module.graph.nodes:
        if node.kwargs.get("device") is not None:
            node.update_kwarg("device", device)
    graph_module.recompile()


def _constants_of(shardings, exported):
    """Returns the values that no state dict has: constants, and buffers that are not
    persistent."""
    values = _constants.carried(exported)
    persistent = getattr(exported, "state_dict", {})
    return {
        entry["name"]: values[entry["name"]]
        for entry in shardings["inputs"]
        if entry["kind"] in ("buffer", "constant")
        and entry["name"] in values
        and entry["name"] not in persistent
    }


def _step_notes(plan: Plan) -> "list[str]":
    """Returns notes on the optimizer's step of a plan, which the module leaves out."""
    steps = [node for node in plan.nodes if node["op"].startswith("optimizer.")]
    if not steps:
        return []
    optimizer = steps[0]["op"].split(".")[1]
    text = (
        f"the plan holds a step of {optimizer}; the module runs forward and backward, "
        "and leaves the step to an optimizer of PyTorch (optimizer.step())"
    )
    finer = [
        name
        for name, value in plan.values.items()
        if value.get("state_placements", value["placements"]) != value["placements"]
    ]
    if finer:
        text += (
            f"; {len(finer)} parameters have a finer layout of the optimizer's state in "
            "the plan: here their gradients are gathered, and their state takes the "
            "layout of the parameter, which needs more memory than planned"
        )
    return [text]


def _is_compiled(plan: Plan, wanted: Optional[bool]) -> bool:
    """Returns whether the program is compiled: as the plan states, or as the caller
    wants if it states nothing."""
    stated = plan.data["options"].get("execution")
    if stated is None:
        return bool(wanted)
    if wanted is not None and wanted != (stated == "compiled"):
        other = "compiled" if wanted else "eager"
        raise Error(
            "SP0001",
            f"the plan is for {stated} execution, and compile={wanted} asks for {other}",
            "compile",
            help=f'plan with execution="{other}", or leave out `compile`',
        )
    return stated == "compiled"


def parallelize(
    exported: Any,
    plan: Plan,
    device_mesh: Any,
    *,
    device: Optional[Union[str, torch.device]] = None,
    compile: Optional[bool] = None,
) -> ParallelModule:
    """Returns the module that runs a plan on a torch DeviceMesh (gloo or NCCL).

    `exported` is the program that was planned: an ExportedProgram, a path or a graph.
    All ranks of the mesh call this together, with the same plan, for example from
    sp.torch.plan(). The program runs as the plan states: if its execution is compiled,
    torch.compile compiles the local program. `compile` decides only if the plan states
    no execution. Constants made in forward get their values from an ExportedProgram or
    a .pt2 file; a bare .json has none (load_weights() takes them).

    An optimizer of PyTorch does the optimizer's step of a plan, and a note says so. The
    plan's other notes also appear (Python warnings, on the first rank).

    Raises Error if the plan is for another program, mesh or execution, if ranks have different
    plans or programs, or if this call fails on a rank. No rank then remains waiting. A
    call of the module raises Error if a rank is lost.
    """

    def prepare():
        is_compiled = _is_compiled(plan, compile)
        graph = exported
        if not isinstance(exported, _core.Graph):
            graph = load_graph(exported, rules=plan._core.rules)
        lowered = _core.lower(plan._core, graph, optimizer_step=False)
        shardings = lowered.shardings()
        parsed = json.loads(shardings)
        _groups.check_mesh(parsed["mesh"], device_mesh)
        index = _groups.mesh_ranks(device_mesh).index(torch.distributed.get_rank())
        archive = lowered.rank_program(parsed["mesh"]["ranks"][index])
        text = hashlib.sha256(f"{lowered}{shardings}".encode()).hexdigest()[:16]
        told = {
            "plan": text,
            "graph": graph.hash,
            "torch release": torch.__version__,
        }
        return (graph, parsed, _load.load(archive), is_compiled), told

    graph, shardings, program, is_compiled = _agreement.agree(
        device_mesh, "parallelize()", prepare
    )
    _groups.register_groups(shardings["groups"], device_mesh)
    module = ParallelModule(
        program,
        shardings,
        _calling.of(exported),
        plan,
        device_mesh,
        device or device_mesh.device_type,
        is_compiled,
    )
    constants = _constants_of(shardings, exported)
    module._carried = frozenset(constants)
    _weights.fill(module, constants, strict=False)
    if torch.distributed.get_rank() == _groups.mesh_ranks(device_mesh)[0]:
        for text in (*graph.notes, *_step_notes(plan)):
            _uses.note(text)
    return module
