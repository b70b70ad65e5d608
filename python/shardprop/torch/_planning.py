"""plan() plans on one rank of a mesh and gives the plan to every rank."""

from typing import Any, Optional

from .. import _plan
from .._error import Error
from . import _agreement


def plan(
    graph: Any, device_mesh: Any, *, compile: Optional[bool] = None, **options: Any
) -> _plan.Plan:
    """Runs sp.plan() on the first rank of a DeviceMesh, for all of its ranks.

    All ranks of the mesh call this together. If each rank planned for itself, a search
    with a time limit could give every rank another plan. A plan runs only if all ranks
    have the same one.

    `options` are those of sp.plan(). parallelize() runs the plan, so that its execution
    is eager by default. With `compile`, it is compiled. An exception on the first rank is
    raised on every rank.
    """
    wanted = "compiled" if compile else "eager"
    if "fusion" not in options:  # the older name of the option
        options.setdefault("execution", wanted)
    if compile is not None and options.get("execution") != wanted:
        raise Error(
            "SP0001",
            f"compile={compile} asks for {wanted} execution, and another one is given",
            "compile",
            help="leave out `compile`",
        )

    def make() -> str:
        made = _plan.plan(graph, device_mesh, **options)
        return f"{int(made.interrupted)}{made.to_json()}"

    text = _agreement.made_on_first(device_mesh, "sp.torch.plan()", make)
    made = _plan.Plan.from_json(text[1:])
    made.interrupted = text[0] == "1"
    return made
