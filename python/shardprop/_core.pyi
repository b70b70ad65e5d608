"""Types of the extension module; what it does is said where the package calls it."""

from collections.abc import Sequence
from typing import Any, Callable, Optional

__version__: str

class Graph:
    """An exported program, read for planning: load_graph() returns one."""

    _read_from: tuple[str | bytes, tuple[Any, ...]]
    @property
    def name(self) -> str: ...
    @property
    def hash(self) -> str:
        """Hash of the program's meaning: a plan records the one that it was made
        for."""
    @property
    def has_backward(self) -> bool: ...
    @property
    def operators(self) -> dict[str, int]:
        """Number of calls of each operator, by its name."""
    @property
    def inputs(self) -> list[tuple[str, str]]:
        """Name and kind (parameter, buffer, constant or user) of each input."""
    @property
    def notes(self) -> list[str]:
        """Assumptions made while the program was read."""
    def __len__(self) -> int:
        """Number of operator calls."""

class Plan:
    @property
    def graph_hash(self) -> str: ...
    @property
    def rules(self) -> list[str]: ...
    def text(self, detail: bool) -> str: ...
    def json(self) -> str: ...

class Program:
    def shardings(self) -> str: ...
    def rank_program(self, rank: int) -> bytes: ...

class Spec:
    @property
    def layout(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class Sharding:
    @property
    def inputs(self) -> list[str]: ...
    @property
    def outputs(self) -> list[tuple[list[int], list[int], str, str]]:
        """Sizes, strides, dtype and layout."""
    @property
    def output_slots(self) -> list[int]: ...
    @property
    def moves(self) -> dict[int, list[tuple[str, str, str]]]:
        """Of each input that moves: collective, layout before and after."""
    @property
    def redistribute_us(self) -> float: ...
    @property
    def inside_us(self) -> float: ...
    @property
    def has_rank_arguments(self) -> bool: ...
    @property
    def needs_program(self) -> bool: ...
    def rank_arguments(self, index: int) -> dict[str, Any]: ...
    def shared_arguments(self) -> Optional[dict[str, Any]]: ...
    def program(self, index: int) -> tuple[list[Any], list[Any]]: ...

class Propagator:
    def __init__(
        self,
        dims: Sequence[tuple[str, int]],
        ranks: Sequence[int],
        topology: str,
        rules: Sequence[str] = ...,
    ) -> None: ...
    def spec(
        self, shape: Sequence[int], strides: Sequence[int], dtype: str, layout: str
    ) -> Spec: ...
    def parse(self, text: str) -> Spec: ...
    def propagate(
        self,
        op: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        results: Optional[Sequence[Optional[Spec]]] = None,
    ) -> Sharding: ...
    def redistribute(self, src: Spec, dst: Spec) -> list[tuple[str, str, str]]: ...
    def operators(self) -> list[str]: ...
    def statistics(self) -> dict[str, int]: ...

def load_graph(
    path: str,
    max_input_bytes: int,
    program: str,
    bounds: list[tuple[str, int]],
    sizes: list[tuple[str, int]],
    other_sizes: list[tuple[str, Optional[bytes]]],
    blocks: str,
    rules: list[str],
) -> Graph: ...
def read_graph(
    bytes: bytes,
    name: str,
    max_input_bytes: int,
    program: str,
    bounds: list[tuple[str, int]],
    sizes: list[tuple[str, int]],
    other_sizes: list[tuple[str, Optional[bytes]]],
    blocks: str,
    rules: list[str],
) -> Graph: ...
def program_json(path: str, max_input_bytes: int, program: str) -> bytes: ...
def program_json_in(bytes: bytes, max_input_bytes: int, program: str) -> bytes: ...
def plan(
    graph: Graph,
    mesh: str,
    topology: str,
    options: list[tuple[str, str]],
    rules: list[str],
    start: Optional[Plan],
    like: Optional[Plan],
    keep_warm_start: bool,
    progress: Optional[Callable[[str, float, Optional[float], Optional[float]], Any]],
) -> tuple[Plan, bool]: ...
def read_plan(json: str) -> Plan: ...
def load_plan(path: str, max_input_bytes: int) -> Plan: ...
def plan_options() -> list[dict[str, Any]]: ...
def topologies() -> list[tuple[str, str]]: ...
def redistribute(
    mesh: str,
    shape: Sequence[int],
    dtype: str,
    src: str,
    dst: str,
    topology: str,
    memory: Optional[int],
) -> dict[str, Any]: ...
def local_region(
    mesh: str, shape: Sequence[int], dtype: str, layout: str, index: int
) -> list[list[tuple[int, int]]]: ...
def canonical(mesh: str, shape: Sequence[int], layout: str) -> str: ...
def lower(plan: Plan, graph: Graph, optimizer_step: bool = True) -> Program: ...
def run(arguments: Sequence[str]) -> int: ...
