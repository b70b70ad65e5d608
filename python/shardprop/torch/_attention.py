"""These checks concern attention inside context_parallel(), which reorders tokens."""

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import OpSchema

_PERMUTED = (
    "context_parallel() is active: the order of its tokens is known to its own "
    "attention alone, which PyTorch has for CUDA, and a causal mask would be wrong. "
    "On other devices shard the sequence of q, k and v by DTensor, outside of "
    "context_parallel()"
)


def shards_tokens(op_schema: OpSchema) -> bool:
    """Returns whether it is an attention whose q, k or v is sharded by tokens."""
    if not op_schema.op._opname.startswith("_scaled_dot_product"):
        return False
    # [..., tokens, features]
    operands = [s for s in op_schema.args_schema if isinstance(s, DTensorSpec)]
    return any(
        getattr(placement, "dim", None) == len(spec.tensor_meta.shape) - 2
        for spec in operands
        for placement in spec.placements
    )


def tokens_are_permuted() -> bool:
    """Returns whether context_parallel() has its handlers in DTensor's dispatcher."""
    flash = torch.ops.aten._scaled_dot_product_flash_attention.default
    return flash in DTensor._op_dispatcher._custom_op_handlers


def refusal(error: Exception) -> str:
    return f"{error}\n\nshardprop does not answer either: {_PERMUTED}"


class InOrder:
    """A call of an attention that needs the tokens of its operands in order. Its answer
    is kept in caches that do not distinguish context_parallel()."""

    def __init__(self, call):
        self._call = call
        self.__name__ = f"{call}"

    def __repr__(self):
        return self.__name__

    def __call__(self, *args, **kwargs):
        if tokens_are_permuted():
            raise RuntimeError(f"{self.__name__}: {_PERMUTED}")
        return self._call(*args, **kwargs)
