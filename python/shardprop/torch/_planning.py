"""plan() plans on one rank of a mesh and gives the plan to every rank."""

from typing import Any

from .. import _plan
from . import _agreement


def plan(graph: Any, device_mesh: Any, **options: Any) -> _plan.Plan:
    """Runs sp.plan() on the first rank of a DeviceMesh, for all of its ranks.

    All ranks of the mesh call this together. If each rank planned for itself, a search
    with a time limit could give every rank another plan. A plan runs only if all ranks
    have the same one.

    `options` are those of sp.plan(). An exception on the first rank is raised on every
    rank.
    """

    def make() -> str:
        made = _plan.plan(graph, device_mesh, **options)
        return f"{int(made.interrupted)}{made.to_json()}"

    text = _agreement.made_on_first(device_mesh, "sp.torch.plan()", make)
    made = _plan.Plan.from_json(text[1:])
    made.interrupted = text[0] == "1"
    return made
