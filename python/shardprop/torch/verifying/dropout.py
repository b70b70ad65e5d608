"""Dropout makes the masks of dropout independent of the layout.

The reference draws the mask of each call. A rank finds its part of the input in the
reference's input, and uses the same part of the mask. Two ranks that hold the same part
must draw with the same state of their generators, as replicas of a real run must. The
second rank draws its own mask if the states differ.
"""

import threading
from typing import Optional

import torch
import torch.nn.functional as F
from torch.distributed.tensor import DTensor
from torch.overrides import TorchFunctionMode

from .context import attention_of_shards, is_enabled
from .random_numbers import MOST_DIFFERENT, Numbers, part, parts
from .watch import current

# context_parallel() replaces the function of the module.
_attention = F.scaled_dot_product_attention
_dropout = F.dropout


_active = threading.local()


def dropout_within_functions(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Replaces F.dropout: functions of PyTorch call it where no mode sees it."""
    handler: "Optional[Dropout]" = getattr(_active, "dropout", None)
    if handler is None:
        return _dropout(input, p, training, inplace)
    return handler._dropout(_dropout, input, p, training, inplace)


class Masks:
    """Masks stores the calls of dropout in the reference run."""

    def __init__(self) -> None:
        #: Input and mask of each call, by module.
        self.calls: "dict[str, list[tuple[torch.Tensor, torch.Tensor]]]" = {}

    def find(self, name: str, number: int, value: torch.Tensor):
        """Returns the mask of a rank's part and a key of this part, or None."""
        calls = self.calls.get(name, [])
        near = [number] if number < len(calls) else []
        best, found = MOST_DIFFERENT, None
        for index in near + [other for other in range(len(calls)) if other != number]:
            full, mask = calls[index]
            scale = float(full.abs().max()) if full.numel() else 0.0
            for offsets, block in parts(full, value.shape):
                difference = 0.0
                if block.numel():
                    difference = float((block - value).abs().max())
                if difference <= best * scale:
                    best = 0.999 * difference / scale if scale else 0.0
                    key = (name, index, offsets)
                    found = part(mask, offsets, value.shape), key
            if found is not None:
                return found
        # A term of a sum equals no part of the input: any part of this size fits.
        for index in near:
            full, mask = calls[index]
            for offsets, _ in parts(full, value.shape):
                return part(mask, offsets, value.shape), (name, index, offsets)
        return None


class Dropout(TorchFunctionMode):
    """Dropout replaces the calls of dropout in one thread."""

    def __init__(self, masks: Masks, draws: bool, numbers: Numbers) -> None:
        """With `draws`, the calls are those of the reference."""
        super().__init__()
        self._masks, self._draws, self._random = masks, draws, numbers
        self._numbers: "dict[str, int]" = {}

    def __enter__(self):
        _active.dropout = self
        return super().__enter__()

    def __exit__(self, *failure):
        _active.dropout = None
        return super().__exit__(*failure)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is _dropout or func is torch.dropout:
            return self._dropout(func, *args, **kwargs)
        if func is _attention:
            return self._attention(*args, **kwargs)
        return func(*args, **kwargs)

    def _attention(
        self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
        scale=None, enable_gqa=False,
    ):
        """Computes attention with dropout of its weights from matmuls."""
        if is_enabled(query) and attn_mask is None:
            return attention_of_shards(
                self._attention, query, key, value, is_causal,
                dropout_p=dropout_p, scale=scale, enable_gqa=enable_gqa,
            )
        if dropout_p == 0:
            return _attention(
                query, key, value, attn_mask, dropout_p, is_causal,
                scale=scale, enable_gqa=enable_gqa,
            )
        if enable_gqa:
            repeats = query.shape[-3] // key.shape[-3]
            key = key.repeat_interleave(repeats, -3)
            value = value.repeat_interleave(repeats, -3)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = query @ key.transpose(-2, -1) * scale
        if is_causal:
            rows, columns = scores.shape[-2:]
            attn_mask = torch.ones(rows, columns, dtype=torch.bool).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = self._dropout(_dropout, scores.softmax(-1), dropout_p, True)
        return weights @ value

    def _dropout(self, func, input, p=0.5, training=None, inplace=False, train=None):
        training = train if training is None else training
        if training is None:
            training = True
        if not training or p == 0:
            return func(input, p, training)
        local = input.to_local() if isinstance(input, DTensor) else input
        state = torch.get_rng_state().numpy().tobytes()
        self._random.paused = True
        try:
            mask = torch.empty_like(local, requires_grad=False).bernoulli_(1 - p)
        finally:
            self._random.paused = False
        recording = current()
        name = recording.modules[-1] if recording and recording.modules else ""
        number = self._numbers[name] = self._numbers.get(name, -1) + 1
        if self._draws:
            calls = self._masks.calls.setdefault(name, [])
            calls.append((local.detach().clone(), mask))
        else:
            found = self._masks.find(name, number, local.detach())
            if found is not None:
                same, key = found
                if self._random.draws.is_same_state(key, state, "dropout"):
                    mask = same.to(local.dtype)
        result = local * mask * (0.0 if p == 1 else 1 / (1 - p))
        if isinstance(input, DTensor):
            result = DTensor.from_local(
                result, input.device_mesh, input.placements,
                shape=input.shape, stride=input.stride(),
            )
        if inplace:
            return input.copy_(result)
        return result
