"""verify() runs a user's parallel program on simulated ranks and compares its values
with those of the same model on one device."""

import contextlib
import inspect
import traceback
import warnings
import weakref
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.utils._pytree import tree_map

from .. import _core
from .._error import Error
from .._mesh import MeshLike, mesh_text
from .verifying.compare import Comparison
from .verifying.dropout import Dropout, Masks
from .verifying.layouts import Grid
from .verifying.noise import Lengths
from .verifying.own_state import OwnState
from .verifying.places import is_ours
from .verifying.random_numbers import Draws, Numbers
from .verifying.report import Report, changed_values, notes_on_waits
from .verifying.watch import Recording, watched_modules, watching
from .verifying.worlds import Simulation


# A name of one of these kinds that no rank has is worth a note.
_NAMED = {"parameter", "output"}


def grid_of(mesh: MeshLike) -> Grid:
    """Returns the mesh of the simulated ranks; each of its dims has a name."""
    text = mesh_text(mesh)
    # This call raises Error unless the text is a mesh.
    _core.canonical(text, [1], ",".join("R" for _ in text.split(",")))
    names, sizes = [], []
    for index, part in enumerate(text.split(",")):
        name, _, size = part.rpartition("=")
        names.append(name or f"d{index}")
        sizes.append(int(size))
    return Grid(tuple(names), tuple(sizes))


def of_rank(batch: Any, double: bool) -> Any:
    """Returns a rank's own copy of the batch."""

    def copied(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        leaf = leaf.detach().clone().requires_grad_(leaf.requires_grad)
        return leaf.double() if double and leaf.is_floating_point() else leaf

    return tree_map(copied, batch)


@contextlib.contextmanager
def _wide(double: bool) -> "Iterator[None]":
    """Makes f64 the default dtype of tensors that a step makes."""
    before = torch.get_default_dtype()
    if double:
        torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Program:
    """A _Program is the user's code, which runs on the ranks and as the reference."""

    def __init__(self, build, parallelize, step, batch, grid: Grid, seed: int) -> None:
        self._build, self._parallelize, self._step = build, parallelize, step
        self._grid, self._seed = grid, seed
        self._own = OwnState([build, parallelize, step])
        if callable(batch):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                batch = batch()
        self._batch = batch
        self._masks, self.draws = Masks(), Draws()
        self._built: "list[weakref.ref[torch.nn.Module]]" = []
        parameters = inspect.signature(step).parameters.values()
        self._takes_mesh = (
            sum(
                p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                and p.default is p.empty
                for p in parameters
            )
            > 2
        )

    def own_notes(self) -> "list[str]":
        """Returns notes on variables that the ranks share."""
        return self._own.notes()

    def reference(self, single: "Optional[Recording]" = None) -> Recording:
        """Runs the model on one device; with the recording `single` of such a run, in
        f64."""
        sizes = (1,) * len(self._grid.sizes)
        simulation = Simulation(1, self._seed, self._own)
        with watched_modules():
            return simulation.run(
                lambda rank: self._run(simulation, sizes, rank, None, single)
            )[0]

    def ranks(self) -> "tuple[list[Recording], Simulation]":
        self.draws.begin()
        simulation = Simulation(self._grid.size, self._seed, self._own)
        with watched_modules():
            recordings = simulation.run(
                lambda rank: self._run(
                    simulation, self._grid.sizes, rank, self._parallelize, None
                )
            )
        return recordings, simulation

    def _new_model(self) -> Any:
        """Returns what build() returns, which each run changes."""
        model = self._build()
        if isinstance(model, torch.nn.Module):
            if any(other() is model for other in self._built):
                raise Error(
                    "SP0903",
                    "build() returns the same model again",
                    "verify",
                    ["each rank and the reference change their own model"],
                    "make the model within build(), or return copy.deepcopy(model)",
                )
            self._built.append(weakref.ref(model))
        return model

    def _run(self, simulation, sizes, rank, parallelize, single) -> Recording:
        recording, double = Recording(rank, single), single is not None
        state = simulation.state
        state.modules = recording.modules
        recording.sent = lambda: state.sent
        model = self._new_model()
        if double:
            model = model.double()
        if isinstance(model, torch.nn.Module):
            recording.names.built(model)
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=self._grid.names)
        is_reference = parallelize is None
        if not is_reference:
            made = parallelize(model, mesh)
            model = model if made is None else made
        recording.names.become(model)
        batch = of_rank(self._batch, double)
        counting = contextlib.nullcontext()
        if is_reference and not double:
            counting = recording.lengths = Lengths()
        if not double:
            recording.watch_order()
        recording.state_of_model(updated=False)
        draws = is_reference and not double
        numbers = Numbers(self.draws, draws)
        dropout = Dropout(self._masks, draws, numbers)
        with watching(recording), numbers, dropout, counting, _wide(double):
            if self._takes_mesh:
                result = self._step(model, batch, mesh)
            else:
                result = self._step(model, batch)
        recording.finish(result)
        return recording


def failed(failure: BaseException, where: str) -> Error:
    """Returns the error for an exception of the user's code."""
    if isinstance(failure, Error):
        return failure
    frames = traceback.extract_tb(failure.__traceback__)
    lines = [
        f"{frame.filename}:{frame.lineno}, in {frame.name}"
        for frame in frames
        if not is_ours(frame.filename)
    ]
    return Error(
        "SP0912",
        f"the program failed: {type(failure).__name__}: {str(failure)[:400]}",
        where,
        lines[-6:],
        "the program must run before its values can be compared",
    )


def verify(
    build: Callable[[], torch.nn.Module],
    parallelize: Callable[[torch.nn.Module, Any], Any],
    step: Callable[..., Any],
    batch: Any,
    mesh: MeshLike,
    *,
    seed: int = 0,
) -> Report:
    """Runs a parallel program on simulated ranks in this process and compares each of
    its values with the model on one device.

    `build()` returns the model. `parallelize(model, mesh)` makes it parallel, in place
    or by returning another module or schedule. `step(model, batch)` or
    `step(model, batch, mesh)` runs forward, and backward and the optimizer if wanted.
    `batch` is any structure of tensors, or a function that returns it; each rank gets a
    copy. The reference is the same code on one rank without parallelize().

    All ranks get the same `seed` before build(). Raises Error if the program fails, if
    its ranks wait for each other, or if ranks of a group call different collectives.
    A wrong value is not an exception: see `Report.ok`.
    """
    program = _Program(build, parallelize, step, batch, grid_of(mesh), seed)
    notes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reference = program.reference()
        except Exception as failure:
            raise failed(failure, "the model on one device") from failure
        try:
            program.reference(reference)
        except Exception as failure:
            notes.append(
                "The reference does not run in f64, so the bounds of float noise are "
                f"wider: {str(failure).splitlines()[0][:200]}"
            )
        try:
            recordings, simulation = program.ranks()
        except Exception as failure:
            rank = getattr(failure, "shardprop_rank", 0)
            raise failed(failure, f"rank {rank}") from failure
    grid = grid_of(mesh)
    comparison = Comparison(reference, recordings, grid)
    changed = [simulation.changed(rank) for rank in range(grid.size)]
    values = changed_values(changed) + comparison.run()
    missing = {key.name for key in comparison.missing if key.kind in _NAMED}
    if missing:
        names = ", ".join(f"`{name or 'model'}`" for name in sorted(missing)[:4])
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        notes.append(f"The ranks have no value that belongs to {names}{more}.")
    notes += program.draws.notes() + program.own_notes()
    notes += notes_on_waits([simulation.not_waited(rank) for rank in range(grid.size)])
    return Report(
        grid.text,
        values,
        [simulation.collectives(rank) for rank in range(grid.size)],
        notes,
    )


def assert_sharded_equals(
    build: Callable[[], torch.nn.Module],
    parallelize: Callable[[torch.nn.Module, Any], Any],
    step: Callable[..., Any],
    batch: Any,
    mesh: MeshLike,
    *,
    seed: int = 0,
) -> Report:
    """Raises AssertionError with the report of verify() if a value is wrong; for tests.

    The arguments are those of verify(). Returns the report.
    """
    report = verify(build, parallelize, step, batch, mesh, seed=seed)
    if not report.ok:
        raise AssertionError(str(report))
    return report
