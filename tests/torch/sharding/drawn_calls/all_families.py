"""Imports every family, so that it is registered."""

from . import (  # noqa: F401
    attention,
    bags,
    composites,
    convolution,
    creation,
    exported,
    gradients,
    indexing,
    linalg,
    matmul,
    norm,
    optimizer,
    pointwise,
    pooling,
    recurrent,
    reduction,
    resample,
    shapes,
)
