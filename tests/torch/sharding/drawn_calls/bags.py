"""Bags of embeddings."""

import torch

from .families import family


@family("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag")
def embedding_bag(d):
    rows, count = d.size(1), d.size()
    dtype = d.rng.choice((torch.float64, torch.float32))
    closed = d.chance(0.3)
    offsets = sorted(d.rng.randint(0, count) for _ in range(d.rng.randint(1, 5)))
    offsets[0] = 0
    if closed:
        offsets.append(count)
    mode = d.rng.randint(0, 2)
    weighted = mode == 0 and d.chance(0.4)
    # The composite operator counts from the end, or has none.
    none = d.rng.choice((None, -1, -rows)) if d.base == "embedding_bag" else -1
    return {
        "weight": d.tensor((rows, d.size(1)), dtype).contiguous(),
        "indices": d.index((count,), rows, negative=False).long(),
        "offsets": torch.tensor(offsets),
        "scale_grad_by_freq": False,
        "mode": mode,
        "sparse": False,
        "per_sample_weights": d.tensor((count,), dtype) if weighted else None,
        "include_last_offset": closed,
        "padding_idx": d.rng.randint(0, rows - 1) if d.chance(0.4) else none,
    }
