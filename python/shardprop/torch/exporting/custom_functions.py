"""kept() keeps the backward of custom functions (torch.autograd.Function) in joint
graphs.

torch.export runs only their forward, and the gradients would silently be those of the
forward's operators. Here a call is an operator until the joint graph is traced. The
trace runs the function itself, forward and backward.
"""

import contextlib

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.checkpoint import CheckpointFunction

from . import checkpoints

_NAMESPACE = "shardprop_functions"
_DATA = (int, float, bool, str, complex, type(None), torch.dtype, torch.device)


def _is_data(leaf):
    return isinstance(leaf, (torch.Tensor, *_DATA))


class _Calls:
    """The operators that represent calls during the export of a program."""

    def __init__(self, apply):
        self._apply = apply
        self._library = torch.library.Library(_NAMESPACE, "FRAGMENT")
        self._count = 0
        self._runs = False

    def close(self):
        self._library._destroy()

    def call(self, function, *args):
        if function is CheckpointFunction and not self._runs:
            closure, _, *operands = args  # its forward has no gradients by itself
            with checkpoints.region():
                return closure(*operands)
        # torch.export handles the functions of torch.cond and similar operators itself.
        if self._runs or function.__module__.startswith("torch."):
            return self._apply.__get__(None, function)(*args)
        leaves, tree = tree_flatten(args)
        # Modules and closures may hold parameters, which are inputs of the graph.
        if not all(map(_is_data, leaves)):
            raise TypeError(
                f"the custom autograd function {function.__name__} takes more than "
                "tensors and numbers"
            )
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        made = {}

        def run(given):
            rest = iter(given)
            own = [next(rest) if isinstance(x, torch.Tensor) else x for x in leaves]
            before, self._runs = self._runs, True
            try:
                result = self._apply.__get__(None, function)(
                    *tree_unflatten(own, tree)
                )
            finally:
                self._runs = before
            results, made["tree"] = tree_flatten(result)
            made["rest"] = [
                None if isinstance(x, torch.Tensor) else (x,) for x in results
            ]
            return [x for x in results if isinstance(x, torch.Tensor)]

        name = f"call{self._count}"
        self._count += 1
        self._library.define(f"{name}(Tensor[] given) -> Tensor[]")
        self._library.impl(name, run, "Autograd")
        self._library.impl(name, run, "CompositeExplicitAutograd")
        results = iter(getattr(getattr(torch.ops, _NAMESPACE), name)(tensors))
        return tree_unflatten(
            [next(results) if x is None else x[0] for x in made["rest"]],
            made["tree"],
        )


@contextlib.contextmanager
def kept():
    """During the block, custom functions keep their backward."""
    original = torch.autograd.Function.__dict__["apply"]
    calls = _Calls(original)
    torch.autograd.Function.apply = classmethod(
        lambda cls, *args: calls.call(cls, *args)
    )
    try:
        yield
    finally:
        torch.autograd.Function.apply = original
        calls.close()
