"""verify_programs() runs one program for each rank on simulated ranks and compares its
values with those of a model on one device."""

import contextlib
import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import torch
import torch.distributed as dist
from torch import fx
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import init_device_mesh
from torch.utils._pytree import tree_flatten

from .. import _core
from .._error import Error
from .._mesh import MeshLike
from . import _layout, _load
from ._verify import failed, grid_of, of_rank
from .verifying import graph_collectives
from .verifying.compare import Comparison
from .verifying.keys import Key
from .verifying.layouts import Fit, Grid, part, placements_of
from .verifying.noise import Lengths
from .verifying.report import Report, changed_values, notes_on_waits
from .verifying.watch import Recording
from .verifying.worlds import Simulation

# Groups of the simulation have numbers from here on as names.
_FIRST_OWN_GROUP = 1_000_000

#: A program of one rank, or the model: it takes tensors one by one.
Program = Union[
    torch.export.ExportedProgram, fx.GraphModule, str, pathlib.Path, Callable
]


def _callable(program: Any) -> Any:
    """Returns a graph module or a function."""
    if isinstance(program, (str, pathlib.Path)):
        program = _load.load(pathlib.Path(program).read_bytes())
    if isinstance(program, torch.export.ExportedProgram):
        return program.graph_module
    return program


def _gradients(program: Any) -> Any:
    """Functions may compute gradients; graphs have all operators of the backward
    pass."""
    is_graph = isinstance(program, fx.GraphModule)
    return torch.no_grad() if is_graph else contextlib.nullcontext()


def _place(node: fx.Node) -> str:
    """Returns the source line of a node, if its graph has it."""
    trace = node.meta.get("stack_trace") or ""
    lines = re.findall(r'File "([^"]+)", line (\d+)', trace)
    return f"{lines[-1][0]}:{lines[-1][1]}" if lines else ""


class _Interpreter(fx.Interpreter):
    """An _Interpreter records the values of a graph.

    In a program of `shardprop emit`, a node names the node of the planned graph for
    which it runs. The last one has the value; copies in other layouts are left out.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        recording: Recording,
        groups: "Optional[graph_collectives.Groups]" = None,
    ) -> None:
        """The model has no `groups`."""
        super().__init__(module)
        self._recording, self._groups = recording, groups

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        if self._groups is not None and graph_collectives.is_collective(target):
            return graph_collectives.run(self._groups, target, args, kwargs)
        return super().call_function(target, args, kwargs)

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n.op == "call_function" and isinstance(value, torch.Tensor):
            source = (n.meta.get("custom") or {}).get("shardprop", {})
            name = source.get("node", n.name if self._groups is None else None)
            # The values of empty() are not initialized.
            is_empty = "empty" in str(n.target)
            if name is not None and "copy" not in source and not is_empty:
                key = Key("value", name)
                self._recording.values.pop(key, None)
                self._recording.add(key, value, _place(n))
            elif name is None and not is_empty:
                self._recording.add_node(n.name, value, _place(n))
        return value


class _Folder:
    """A _Folder is a folder that `shardprop emit` wrote."""

    def __init__(self, path: pathlib.Path) -> None:
        try:
            shardings = json.loads((path / "shardings.json").read_text())
        except OSError as failure:
            raise Error(
                "SP0903",
                "the folder has no programs of ranks",
                str(path / "shardings.json"),
                [str(failure)],
                "give a folder of `shardprop emit`, or one program for each rank",
            ) from None
        self.mesh = {dim["name"]: dim["size"] for dim in shardings["mesh"]["dims"]}
        self.groups = {
            group["name"]: group["ranks"] for group in shardings["groups"]
        }
        self.inputs = [entry["name"] for entry in shardings["inputs"]]
        self.layouts = [_layout.layout_text(entry) for entry in shardings["inputs"]]
        self.outputs = [
            entry.get("target", entry["name"])
            if entry["kind"] != "gradient" else f"gradient of {entry['target']}"
            for entry in shardings["outputs"]
        ]
        self.nodes = [entry["name"] for entry in shardings["outputs"]]
        self.output_layouts = [
            _layout.layout_text(entry) for entry in shardings["outputs"]
        ]
        one = path / "program.pt2"
        size = grid_of(self.mesh).size
        self.programs = [
            one if one.exists() else path / f"rank{rank}.pt2" for rank in range(size)
        ]


def _register(groups: "dict[str, list[list[int]]]", grid: Grid, mesh) -> None:
    """Creates and names the groups of a rank's collectives."""
    rank = dist.get_rank()
    for name, members in groups.items():
        if name == dist.group.WORLD.group_name:
            continue
        for ranks in members:
            made = dist.new_group(list(ranks))
            if rank in ranks:
                torch._C._distributed_c10d._register_process_group(name, made)
    for name in grid.names:
        if name not in groups:
            held = mesh.get_group(name)
            torch._C._distributed_c10d._register_process_group(name, held)


def _local(full: Any, layout: str, grid: Grid, rank: int) -> Any:
    if not isinstance(full, torch.Tensor):
        return full
    intervals = _core.local_region(grid.text, list(full.shape), "f32", layout, rank)
    return part(full, intervals).clone(memory_format=torch.contiguous_format)


def _wrong_count(what: str, found: int, expected: int) -> Error:
    return Error(
        "SP0903",
        f"the number of {what} does not fit",
        "verify_programs()",
        [f"found: {found}", f"expected: {expected}"],
        "give one program for each rank of the mesh, and one layout for each input",
    )


def verify_programs(
    programs: "Union[str, pathlib.Path, Sequence[Program]]",
    model: Program,
    inputs: "Sequence[Any]",
    mesh: Optional[MeshLike] = None,
    *,
    layouts: "Optional[Sequence[str]]" = None,
    output_layouts: "Optional[Sequence[str]]" = None,
    groups: "Optional[Mapping[str, Sequence[Sequence[int]]]]" = None,
) -> Report:
    """Runs one program for each rank in this process and compares its results with the
    model on one device.

    `programs` is a folder that `shardprop emit` wrote, or one program for each rank in
    the order of the mesh: an exported program, a .pt2 file, an FX graph or a function.
    `inputs` are the full tensors. Each rank gets its part by `layouts`, one text such as
    "S(0),R" for each input. `model` takes the full tensors and returns the same
    values as the programs. It may also return a dict of values by the names of its nodes.

    Results must have `output_layouts` if they are given. Without them a result may have
    any layout, but only a loss may be left as terms. `groups` gives the ranks of
    each group by the name that the programs' collectives use. The groups of single mesh
    dims have the names of the dims. A folder has layouts, groups and mesh itself.

    Raises Error as verify() does.
    """
    names: "Optional[list[str]]" = None
    nodes: "Optional[list[str]]" = None
    if isinstance(programs, (str, pathlib.Path)):
        folder = _Folder(pathlib.Path(programs))
        programs, mesh = folder.programs, folder.mesh
        layouts, groups = folder.layouts, folder.groups
        output_layouts = folder.output_layouts
        names, nodes = folder.outputs, folder.nodes
    if mesh is None:
        raise _wrong_count("mesh dims", 0, 1)
    grid = grid_of(mesh)
    layouts = list(layouts or [])
    if len(programs) != grid.size:
        raise _wrong_count("programs", len(programs), grid.size)
    if len(layouts) != len(inputs):
        raise _wrong_count("layouts", len(layouts), len(inputs))
    loaded: "dict[Any, Any]" = {}
    ranks_programs = []
    for program in programs:
        key = program if isinstance(program, (str, pathlib.Path)) else id(program)
        if key not in loaded:
            loaded[key] = _callable(program)
        ranks_programs.append(loaded[key])
    reference_program = _callable(model)

    def reference(single: Optional[Recording]) -> Recording:
        simulation = Simulation(1)

        def body(rank: int) -> Recording:
            recording = Recording(rank, single)
            recording.lengths = Lengths()
            with _gradients(reference_program), recording.lengths:
                _run_model(recording, of_rank(list(inputs), single is not None))
            return recording

        return simulation.run(body)[0]

    def _run_model(recording: Recording, given) -> None:
        if isinstance(reference_program, fx.GraphModule):
            results = _Interpreter(reference_program, recording).run(*given)
        else:
            results = reference_program(*given)
        if isinstance(results, Mapping):
            for name, value in results.items():
                recording.add(Key("value", name), value)
            results = [results[node] for node in nodes or list(results)]
        _add_results(recording, results, names)

    simulation = Simulation(grid.size)

    def body(rank: int) -> Recording:
        recording, state = Recording(rank), simulation.state
        recording.sent = lambda: state.sent
        # The names of traced groups are small numbers.
        distributed_c10d._world.group_count = _FIRST_OWN_GROUP
        device_mesh = init_device_mesh("cpu", grid.sizes, mesh_dim_names=grid.names)
        _register(dict(groups or {}), grid, device_mesh)
        given = [
            _local(full, layout, grid, rank) for full, layout in zip(inputs, layouts)
        ]
        program = ranks_programs[rank]
        found = graph_collectives.Groups(set(groups or {}), grid, device_mesh)
        with _gradients(program):
            if isinstance(program, fx.GraphModule):
                results = _Interpreter(program, recording, found).run(*given)
            else:
                results = program(*given)
        _add_results(recording, results, names)
        return recording

    try:
        expected = reference(None)
    except Exception as failure:
        raise failed(failure, "the model on one device") from failure
    with contextlib.suppress(Exception):
        reference(expected)
    try:
        recordings = simulation.run(body)
    except Exception as failure:
        rank = getattr(failure, "shardprop_rank", 0)
        raise failed(failure, f"rank {rank}") from failure
    stated = {}
    for index, layout in enumerate(output_layouts or []):
        path = names[index] if names else f"[{index}]"
        stated[Key("result", "", path)] = Fit(placements_of(layout))
    comparison = Comparison(expected, recordings, grid, stated)
    ranks = range(grid.size)
    changed = [simulation.changed(rank) for rank in ranks]
    values = changed_values(changed) + comparison.run()
    return Report(
        grid.text,
        values,
        [simulation.collectives(rank) for rank in ranks],
        notes_on_waits([simulation.not_waited(rank) for rank in ranks]),
    )


def _add_results(recording: Recording, results: Any, names) -> None:
    for index, value in enumerate(tree_flatten(results)[0]):
        path = names[index] if names and index < len(names) else f"[{index}]"
        recording.add(Key("result", "", path), value)
