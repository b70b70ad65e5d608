"""This module has plan() and the Plan that it returns."""

import functools
import html
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Optional, TextIO, Union

from . import _core
from ._graph import MAX_INPUT_BYTES, Graph, GraphLike, load_graph
from ._mesh import MeshLike, mesh_text
from ._texts import layout_text, pair_texts, rule_texts, topology_text

# Arguments: phase ("set up", "search", "report"), seconds so far, and the best
# objective and the lower bound in microseconds, or None.
ProgressCallback = Callable[[str, float, Optional[float], Optional[float]], None]


class Plan:
    """A Plan has the layout of every tensor of a graph, and all redistributions.

    plan() makes one; load() and from_json() read one. `data` is the plan's JSON (schema
    shardprop.plan/3), and the properties are parts of it.
    """

    def __init__(self, core: "_core.Plan", interrupted: bool = False):
        self._core = core
        #: Whether ctrl-C ended the search: then this is the best plan so far.
        self.interrupted = interrupted

    @functools.cached_property
    def data(self) -> "dict[str, Any]":
        """Returns the JSON, which is parsed once."""
        return json.loads(self._core.json())

    @property
    def status(self) -> str:
        """optimal, feasible, infeasible or unknown."""
        return self.data["status"]

    @property
    def objective_us(self) -> Optional[float]:
        """The time of a step in microseconds. It is None without a plan."""
        return self.data["objective_us"]

    @property
    def free_lower_bound_us(self) -> Optional[float]:
        """Returns a bound of plans whose equal layers may have different layouts.

        It is None if `lower_bound_us` is that bound, and if it is not known.
        """
        return self.data.get("free_lower_bound_us")

    @property
    def lower_bound_us(self) -> float:
        """Returns the lower bound in microseconds: every plan takes at least as
        long."""
        return self.data["lower_bound_us"]

    @property
    def gap(self) -> Optional[float]:
        """Returns the distance of the objective from the bound, relative to the
        objective."""
        return self.data["gap"]

    @property
    def mesh(self) -> "dict[str, int]":
        """Returns the sizes of the mesh dims by name, outermost first."""
        return {dim["name"]: dim["size"] for dim in self.data["mesh"]["dims"]}

    @property
    def values(self) -> "dict[str, dict[str, Any]]":
        """Returns parameters, buffers and user inputs by their own names."""
        return self.data["values"]

    @property
    def copies(self) -> "list[dict[str, Any]]":
        """Returns every redistribution, in the order of the program.

        Its `reason` has the user of the copy, the layout that the user wants, the
        cause, and the best alternative.
        """
        return self.data["copies"]

    @property
    def nodes(self) -> "list[dict[str, Any]]":
        """Returns every operator call, with its layouts and the collectives inside."""
        return self.data["nodes"]

    @property
    def memory(self) -> "dict[str, Any]":
        """Returns the bytes of each rank: the limit, and the peak with its place and
        parts."""
        return self.data["memory"]

    @property
    def summary(self) -> "dict[str, Any]":
        """Returns total times and bytes, and the collectives by kind."""
        return self.data["summary"]

    @property
    def notes(self) -> "list[dict[str, Any]]":
        """Returns notes on surprising features of the plan.

        Each has a `code` and its figures: {"code": "pipeline_dim", "mesh_dim": "pp",
        "size": 2}. A note of the graph has the code "graph" and a `text`. explain()
        has all notes as sentences.
        """
        return self.data.get("notes", [])

    def placements(self, name: str) -> "list[str]":
        """Returns the layout of a parameter, buffer or input: ["S(0)", "R"]."""
        try:
            return self.values[name]["placements"]
        except KeyError:
            raise KeyError(
                f"the plan has no parameter, buffer or input {name!r}"
            ) from None

    def explain(self, detail: bool = False) -> str:
        """Returns a report: totals, layouts, collectives and reasons.

        The report fits a screen. With `detail` it lists every redistribution.
        """
        return self._core.text(detail)

    def to_json(self) -> str:
        """Returns the text that save() writes and from_json() reads."""
        return self._core.json()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the JSON completely or not at all."""
        path = os.fspath(path)
        beside = f"{path}.{os.getpid()}.part"
        try:
            with open(beside, "w", encoding="utf-8") as out:
                out.write(self.to_json())
            os.replace(beside, path)
        except BaseException:
            if os.path.exists(beside):
                os.unlink(beside)
            raise

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Plan":
        """Reads a file of save(). Raises Error if it is absent or not a plan."""
        return cls(_core.load_plan(os.fspath(path), MAX_INPUT_BYTES))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Reads the JSON of to_json(). Raises Error if the text is not a plan."""
        return cls(_core.read_plan(text))

    def __reduce__(self) -> "tuple[Any, ...]":
        """Pickles and copies the plan as its JSON."""
        return _from_json, (self.to_json(), self.interrupted)

    def __repr__(self) -> str:
        mesh = ",".join(f"{name}={size}" for name, size in self.mesh.items())
        cost = (
            "no plan"
            if self.objective_us is None
            else f"{self.objective_us:.1f} us"
        )
        return f"<Plan {self.data['graph']['name']} on {mesh}: {self.status}, {cost}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def _from_json(text: str, interrupted: bool) -> Plan:
    return Plan(_core.read_plan(text), interrupted)


class _Bar:
    """_Bar prints one line on a terminal and overwrites it each time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = 0

    def __call__(
        self,
        phase: str,
        seconds: float,
        objective: Optional[float],
        bound: Optional[float],
    ) -> None:
        text = f"{seconds:7.1f} s  {phase}"
        if objective is not None:
            text += f"  best {objective:.1f} us"
        if bound is not None:
            text += f"  bound {bound:.1f} us"
        self._write(text)

    def close(self) -> None:
        self._write("")
        self._stream.write("\r")
        self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


def _option_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _option_texts(options: "Mapping[str, Any]") -> "list[tuple[str, str]]":
    """Returns the options as pairs of name and text, for the library's table."""
    rows = {row["name"]: row for row in _core.plan_options()}
    texts = []
    for name, value in options.items():
        if name in ("pin", "pins"):
            pins = pair_texts(name, value, layout_text)
            texts += [("pin", text) for text in pins]
            continue
        repeatable = rows.get(name, {}).get("repeatable", False)
        if repeatable and not isinstance(value, str) and isinstance(value, Iterable):
            texts += [(name, _option_text(each)) for each in value]
        else:
            texts.append((name, _option_text(value)))
    return texts


def plan(
    graph: Union[Graph, GraphLike],
    mesh: MeshLike,
    *,
    topology: Union[str, "os.PathLike[str]"] = "dgx-h100",
    rules: Union[Iterable[str], Mapping[str, str]] = (),
    start_from: Union[Plan, str, "os.PathLike[str]", None] = None,
    like: Union[Plan, str, "os.PathLike[str]", None] = None,
    keep_warm_start: bool = False,
    progress: Union[bool, ProgressCallback, None] = None,
    **options: Any,
) -> Plan:
    """Plans a graph on a mesh at least cost.

    `graph` is a Graph or a source of load_graph(); `mesh` may be a torch DeviceMesh.
    `topology` is the name of a preset or the path of a topology file. `options` are
    those of plan_options(), such as memory="80GiB" (or bytes, or None),
    optimizer="adamw", gap=0, time_limit=60, threads=2, seed=0,
    pins={"lm_head.weight": "S(0),R"}. A layout may also be a placement for each mesh
    dim: plan.placements(name), or (Shard(0), Replicate()). `rules` say how operators of
    your own may be sharded, as --rule does: ["mylib.swiglu=pointwise()"] or
    {"mylib.swiglu": "pointwise()"}; a path, or "@FILE", names a file of operators
    (docs/add_an_operator.md). The rules of load_graph() also apply, unless `rules` has
    one for the same operator.

    The search ends once the plan is within `gap` of the bound, 0.01 by default. If
    neither time_limit nor work_limit is given, the search has a work limit, so that
    every machine makes the same plan.

    `start_from` is an earlier plan or the path of one: of this graph, or of a graph with
    mostly the same names. The search begins with it, so that planning again after a
    small change takes less time. With keep_warm_start=True the plan keeps what its search
    learned about the bound, which takes memory. A search in this process that starts from
    it then takes less time. Files do not have this knowledge.

    `like` is a plan of the same model on the same mesh, or the path of one. Parameters
    and buffers are then laid out as in that plan, so that both programs share them:
    plan(decode, mesh, like=plan(prefill, mesh)).

    `progress` is called a few times a second. If it is True, a line on standard error
    shows the progress; if it is None, only on a terminal. Ctrl-C ends the search and
    returns the best plan so far (`Plan.interrupted`). Without a plan so far it raises
    KeyboardInterrupt.

    Raises Error for bad input. If no plan fits, the plan has the status infeasible.
    """
    if not isinstance(graph, _core.Graph):
        graph = load_graph(graph, rules=rules)
    if start_from is not None and not isinstance(start_from, Plan):
        start_from = Plan.load(start_from)
    if like is not None and not isinstance(like, Plan):
        like = Plan.load(like)
    bar = None
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if progress is True:
        bar = progress = _Bar(sys.stderr)
    try:
        core, interrupted = _core.plan(
            graph,
            mesh_text(mesh),
            topology_text(topology),
            _option_texts(options),
            rule_texts(rules),
            None if start_from is None else start_from._core,
            None if like is None else like._core,
            keep_warm_start,
            progress or None,
        )
    finally:
        if bar is not None:
            bar.close()
    return Plan(core, interrupted)


def plan_options() -> "list[dict[str, Any]]":
    """Returns the options of plan(): name, description, range, default, choices."""
    return _core.plan_options()
