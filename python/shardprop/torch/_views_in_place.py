"""These handlers answer views in place, such as `x.squeeze_(0)` and `x.t_()`.

DTensor's dispatcher keeps the old sizes of the tensor if its placements stay, so that
`Partial()` of [1, 3] still says [1, 3] after `squeeze_(0)`. Here the view that is not in
place answers, and the tensor becomes that view:

    x = DTensor.from_local(torch.ones(1, 3), mesh, [Partial()])
    x.squeeze_(0).shape    # torch.Size([3])

A view that would have to be a copy is refused.
"""

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import return_and_correct_aliasing

from ._moved_views import MovedViewSpec

aten = torch.ops.aten

_VIEWS = {
    aten.squeeze_.default: aten.squeeze.dims,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.squeeze_.dims: aten.squeeze.dims,
    aten.unsqueeze_.default: aten.unsqueeze.default,
    aten.t_.default: aten.t.default,
    aten.transpose_.default: aten.transpose.int,
}


def install(dispatcher) -> None:
    """Answers the operators above for all DTensors."""
    dispatcher._custom_op_handlers.update(dict.fromkeys(_VIEWS, _view_in_place))


def uninstall(dispatcher) -> None:
    """Undoes install()."""
    for op in _VIEWS:
        dispatcher._custom_op_handlers.pop(op, None)


def _view_in_place(op, args, kwargs) -> DTensor:
    tensor, *rest = args
    if op is aten.squeeze_.default:
        # The local tensor may have more dims of size 1.
        rest = [[dim for dim, size in enumerate(tensor.shape) if size == 1]]
    made = _VIEWS[op](tensor, *rest, **kwargs)
    if isinstance(made._spec, MovedViewSpec):
        reason = (
            "its tensor is a view that is a copy"
            if isinstance(tensor._spec, MovedViewSpec)
            else f"{tensor._spec.placements} of {list(tensor.shape)} would have to move, "
            "and other views of the tensor would no longer share its memory"
        )
        raise RuntimeError(
            f"{op} is refused: {reason}. Help: take the view that is not in place, "
            f"`{_VIEWS[op].overloadpacket.__name__}`."
        )
    tensor._local_tensor = made._local_tensor
    tensor._spec = made._spec
    return return_and_correct_aliasing(op, args, kwargs, tensor)
