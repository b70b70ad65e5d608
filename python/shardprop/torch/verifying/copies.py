"""Copies copies tensors, and one that does not change only once."""

import weakref
from typing import Any

import torch


class Copies:
    """Copies is the copies of the values of a run.

    The output of a module is mostly the input of the next one too.
    """

    def __init__(self) -> None:
        self._copies: "dict[int, tuple[Any, torch.Tensor]]" = {}

    def of(self, value: torch.Tensor) -> torch.Tensor:
        held, copy = self._copies.get(id(value), (None, value))
        # Writes through `.data` do not change the version of a tensor.
        if held is not None and held() is value and torch.equal(value, copy):
            return copy
        copy = value.detach().clone()
        self._copies[id(value)] = weakref.ref(value), copy
        return copy
