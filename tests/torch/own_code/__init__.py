"""This package has parallel programs as users write them, each right and with one
mistake. `CASES` lists them.
"""

from . import (
    adapters,
    attention_across_ranks,
    data_parallel,
    dtensors,
    experts,
    features,
    gradients_by_hand,
    heads,
    layouts_of_tokens,
    mixtures,
    optimizers,
    random_layers,
    schedules,
    sequences,
    shards_of_data,
    steps,
    styles,
    tensor_parallel,
    torchtitan_bugs,
    transformers_by_hand,
    words,
)
from .cases import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "adapters",
    "attention_across_ranks",
    "data_parallel",
    "dtensors",
    "experts",
    "features",
    "gradients_by_hand",
    "heads",
    "layouts_of_tokens",
    "mixtures",
    "optimizers",
    "random_layers",
    "schedules",
    "sequences",
    "shards_of_data",
    "steps",
    "styles",
    "tensor_parallel",
    "torchtitan_bugs",
    "transformers_by_hand",
    "words",
]
