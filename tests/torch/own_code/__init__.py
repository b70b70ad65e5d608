"""This package has parallel programs as users write them, each right and with one
mistake. `CASES` lists them.
"""

from . import (
    data_parallel,
    dtensors,
    experts,
    heads,
    layouts_of_tokens,
    schedules,
    tensor_parallel,
    torchtitan_bugs,
)
from .cases import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "data_parallel",
    "dtensors",
    "experts",
    "heads",
    "layouts_of_tokens",
    "schedules",
    "tensor_parallel",
    "torchtitan_bugs",
]
