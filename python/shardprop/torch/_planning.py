"""plan(): one rank of a mesh plans, and every rank gets the plan."""

from typing import Any

from .. import _plan
from . import _agreement


def plan(graph: Any, device_mesh: Any, **options: Any) -> _plan.Plan:
    """sp.plan() on the first rank of a DeviceMesh, for all of its ranks.

    All ranks of the mesh call this together. A search that ends by its time can
    give every rank another plan; a plan runs if all ranks have the same.

    `options` are those of sp.plan(). Raises on every rank what planning raises on
    the first.
    """

    def make() -> str:
        made = _plan.plan(graph, device_mesh, **options)
        return f"{int(made.interrupted)}{made.to_json()}"

    text = _agreement.made_on_first(device_mesh, "sp.torch.plan()", make)
    made = _plan.Plan.from_json(text[1:])
    made.interrupted = text[0] == "1"
    return made
