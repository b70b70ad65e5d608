"""Repeats calls with another memory layout of the operands.

    for again in relaid(drawn, random.Random(0), count=2): ...    # Drawn

Operands are in another order of dims, channels last, parts of larger tensors, or
expanded (then of other values). PyTorch runs each call, so that its results are known.
"""

import torch
from torch.utils import _pytree as pytree

from .capture import arguments_of, call_of, torch_op
from .drawn_calls import Drawn
from .op_samples import exact_copy

_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _in_order(x, rng):
    order = rng.sample(range(x.dim()), x.dim())
    back = [order.index(d) for d in range(x.dim())]
    return x.permute(order).contiguous().permute(back)


def _channels_last(x, _):
    return x.contiguous(memory_format=_CHANNELS_LAST.get(x.dim(), torch.contiguous_format))


def _part(x, rng):
    d = rng.randrange(x.dim())
    return torch.cat([x, x], d).narrow(d, 0, x.shape[d])


def _part_of_channels_last(x, rng):
    d = rng.randrange(x.dim())
    return _channels_last(torch.cat([x, x], d), rng).narrow(d, 0, x.shape[d])


def _every_other(x, rng):
    d = rng.randrange(x.dim())
    return torch.repeat_interleave(x, 2, d)[(slice(None),) * d + (slice(None, None, 2),)]


def _expanded(x, rng):
    d = rng.randrange(x.dim())
    return x.narrow(d, 0, min(1, x.shape[d])).expand(x.shape)


_WAYS = (_in_order, _channels_last, _part, _part_of_channels_last, _every_other, _expanded)


def relaid(drawn, rng, *, count):
    """Yields `count` such calls, less the ones that PyTorch refuses."""
    if not any(len(meta.shape) > 1 for meta in drawn.call.inputs):
        return
    for _ in range(count):
        usual = rng.choice(_WAYS)

        def lay(x, usual=usual):
            way = usual if rng.random() < 0.7 else rng.choice(_WAYS)
            return way(x, rng) if x.dim() and rng.random() < 0.9 else x

        given = arguments_of(drawn.call, [lay(x) for x in drawn.inputs])
        try:
            results = torch_op(drawn.call.op)(
                **pytree.tree_map_only(torch.Tensor, exact_copy, given)
            )
        except Exception:  # noqa: BLE001  (torch refuses by any exception)
            continue
        call, inputs = call_of(drawn.call.op, given, results)
        yield Drawn(call, tuple(inputs))
