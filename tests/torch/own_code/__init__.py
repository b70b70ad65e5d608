"""This package has parallel programs as users write them, each right and with one
mistake. `CASES` lists them.
"""

from . import (
    attention_across_ranks,
    data_parallel,
    dtensors,
    experts,
    features,
    gradients_by_hand,
    heads,
    layouts_of_tokens,
    random_layers,
    schedules,
    styles,
    tensor_parallel,
    torchtitan_bugs,
    transformers_by_hand,
)
from .cases import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "attention_across_ranks",
    "data_parallel",
    "dtensors",
    "experts",
    "features",
    "gradients_by_hand",
    "heads",
    "layouts_of_tokens",
    "random_layers",
    "schedules",
    "styles",
    "tensor_parallel",
    "torchtitan_bugs",
    "transformers_by_hand",
]
