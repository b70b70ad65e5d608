"""Imports every family, so that it is registered."""

from . import (  # noqa: F401
    attention,
    convolution,
    creation,
    indexing,
    matmul,
    norm,
    pointwise,
    pooling,
    reduction,
    shapes,
)
