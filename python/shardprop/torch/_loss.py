"""Loss is the loss of a planned module. Its gradients are already computed."""

from typing import Any

import torch

from .._error import Error


def _no_backward() -> Error:
    return Error(
        "SP0001",
        "the module has run its backward pass already",
        "backward()",
        ["the call of the module left the gradients in .grad"],
        "leave out backward() and GradScaler, and call optimizer.step()",
    )


class Loss(torch.Tensor):
    """A tensor with the loss. Arithmetic, item() and saving work as for any tensor.

    It has no autograd graph. backward() raises Error, and so does backward() of results
    that are computed from it.
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.backward, torch.autograd.grad):
            raise _no_backward()
        return super().__torch_function__(func, types, args, kwargs or {})

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Files of torch.save() hold a plain tensor.
        return self.as_subclass(torch.Tensor).__reduce_ex__(protocol)

    def __repr__(self, **options: Any) -> str:
        return repr(self.as_subclass(torch.Tensor))


def loss_of(value: torch.Tensor) -> torch.Tensor:
    """Returns the value as a Loss; a fake tensor is returned unchanged."""
    return value.as_subclass(Loss) if type(value) is torch.Tensor else value
