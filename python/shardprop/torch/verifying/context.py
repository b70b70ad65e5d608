"""attention_of_shards() is the attention of PyTorch's context_parallel() on the CPU.

PyTorch runs it as a ring of flash attention, which exists on GPUs only. Here each rank
gathers the keys and values of all ranks, which gives the same values and gradients.
"""

import importlib
from typing import Any, Callable

import torch
from torch.distributed import _functional_collectives as collectives
from torch.distributed.tensor import DTensor, Shard

# Heads and tokens of a query: [batch, heads, tokens, features].
_TOKENS = 2

def is_enabled(query: Any) -> bool:
    """Returns whether a query is sharded by context_parallel()."""
    if not isinstance(query, DTensor) or query.placements != (Shard(_TOKENS),):
        return False
    handlers = DTensor._op_dispatcher._custom_op_handlers
    return torch.ops.aten._scaled_dot_product_flash_attention.default in handlers


def _is_balanced() -> bool:
    """Returns whether each rank holds a chunk from the front and one from the back."""
    module = importlib.import_module(
        "torch.distributed.tensor.experimental._context_parallel._attention"
    )
    return bool(module._cp_options.enable_load_balance)


def _positions(count: int, rank: int, ranks: int, is_balanced: bool) -> torch.Tensor:
    """Returns the positions of the tokens of a rank in the sequence."""
    if not is_balanced:
        return torch.arange(rank * count, (rank + 1) * count)
    half = count // 2
    back = 2 * ranks - 1 - rank
    return torch.cat([
        torch.arange(rank * half, (rank + 1) * half),
        torch.arange(back * half, (back + 1) * half),
    ])


def attention_of_shards(
    attention: Callable, query, key, value, is_causal: bool, **options
) -> DTensor:
    """Returns the rows of the queries of this rank."""
    mesh, is_balanced = query.device_mesh, _is_balanced()
    if is_balanced and not is_causal:
        raise RuntimeError("Load balancing requires `is_causal=True`.")
    own = query.to_local()
    full = [
        collectives.all_gather_tensor_autograd(
            tensor.to_local().contiguous(), _TOKENS, mesh.get_group()
        )
        for tensor in (key, value)
    ]
    mask = None
    if is_causal:
        count, ranks = own.shape[_TOKENS], mesh.size()
        places = [_positions(count, r, ranks, is_balanced) for r in range(ranks)]
        mask = places[mesh.get_local_rank()][:, None] >= torch.cat(places)[None, :]
    result = attention(own, *full, mask, **options)
    return DTensor.from_local(result, mesh, query.placements, run_check=False)
