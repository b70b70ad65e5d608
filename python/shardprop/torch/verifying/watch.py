"""Recording stores the values of one rank's run: inputs and outputs of modules, their
gradients, parameters, buffers, gradients and the optimizer's state.

Values are copied when they appear. User code is not changed: calls of modules are seen
through `torch.nn.Module.__call__`, steps of optimizers through PyTorch's global hooks.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_map

from .copies import Copies
from .keys import COUNTED, Key
from .names import Names
from .noise import Lengths, Update, Work, computable, error_of
from .places import is_inferring_shapes, user_place
from .seen import Seen, as_tensor, local_of, usable


class Recording:
    """A Recording is everything that one rank's run computed, by Key."""

    def __init__(self, rank: int, reference: "Optional[Recording]" = None) -> None:
        """A recording of a run in f64 stores its difference to the `reference`, in the
        values of the reference, and no values."""
        self.rank, self._reference = rank, reference
        self._copies = Copies()
        #: True after a value of the reference that overflows but does not in f64: a
        #: step that depends on it may do other things in f64.
        self._overflows = False
        #: The number of calls of each value, in a run in f64.
        self._numbers: "dict[Key, int]" = {}
        self.values: "dict[Key, list[Seen]]" = {}
        #: The lines that called each module, from its first call.
        self.places: "dict[str, str]" = {}
        #: The positions at which each gradient was complete in backward().
        self.gradient_order: "dict[str, list[int]]" = {}
        #: The modules in which this rank is, innermost last.
        self.modules: "list[str]" = []
        #: Counts the reductions of the reference run.
        self.lengths: "Optional[Lengths]" = None
        #: Values of a traced program, by node; the model's nodes have other names.
        self.nodes: "dict[str, Seen]" = {}
        self.names = Names()
        #: Returns the coarsest dtype that this rank has sent.
        self.sent: "Callable[[], torch.dtype]" = lambda: torch.float64
        #: The number of steps of optimizers, and of those with recorded parameters.
        self.steps = self._recorded_steps = 0
        #: The keys of the latest inputs of each module.
        self._inputs: "dict[str, list[Key]]" = {}
        self._clock = self._updates = 0
        #: The buffers of integers of the reference, before the step.
        self._whole: "dict[str, torch.Tensor]" = {}
        self._optimizers: "list[torch.optim.Optimizer]" = []
        #: The parameters that an optimizer of this rank has updated.
        self.stepped: "set[str]" = set()

    # Values.

    def add(self, key: Key, value: Any, place: str = "", call: Optional[int] = None):
        """Records a value if it is a tensor of numbers."""
        if not isinstance(value, torch.Tensor):
            return
        is_whole = not (value.is_floating_point() or value.is_complex())
        if is_whole and (key.kind not in COUNTED or value.dtype == torch.bool):
            return
        if value.is_meta or isinstance(value, FakeTensor):
            return
        if self._reference is not None:
            value = value.detach()
            dense = value if value.layout == torch.strided else value.to_dense()
            self._add_error(self._reference, key, dense, call)
            return
        with torch.no_grad(), _disable_current_modes():
            local, stated = local_of(value)
            if local.layout != torch.strided:
                local = local.to_dense()
            tensor = local.double() if is_whole else self._copies.of(local)
        work = self.lengths.work if self.lengths else Work()
        seen = Seen(tensor, stated, self._clock, place, work, None, self.sent(), is_whole)
        self._clock += 1
        calls = self.values.setdefault(key, [])
        if call is None:
            calls.append(seen)
        else:
            # Gradients come in the reverse order of the calls.
            while len(calls) <= call:
                calls.append(None)  # type: ignore[arg-type]
            calls[call] = seen

    def _add_error(self, reference, key: Key, value, call: Optional[int]) -> None:
        number = self._numbers.get(key, 0)
        self._numbers[key] = number + 1
        calls = reference.values.get(key, [])
        number = number if call is None else call
        seen = calls[number] if number < len(calls) else None
        if seen is None or seen.tensor.shape != value.shape:
            return
        with torch.no_grad(), _disable_current_modes():
            known = None
            if key.kind == "updated parameter":
                update = reference.update_of(key.name)
                known = update.rounding(seen.tensor) if update is not None else None
            elif key.kind != "optimizer state":
                finite = torch.isfinite(computable(seen.tensor))
                self._overflows |= not torch.equal(finite, torch.isfinite(computable(value)))
            if not self._overflows:
                seen.error = error_of(seen.tensor, value, known)

    def update_of(self, name: str) -> Optional[Update]:
        """Returns the update of a parameter, without its gradient."""
        before = usable(self.values.get(Key("parameter", name), []))
        if not before:
            return None
        states = [
            calls[-1].tensor
            for key, calls in self.values.items()
            if key.kind == "optimizer state" and key.name == name
        ]
        return Update(before[0].tensor, None, None, self.writes, states)

    def add_node(self, name: str, value: torch.Tensor, place: str) -> None:
        """Records the value of a node that names no node of the model."""
        if value.is_floating_point():
            with torch.no_grad(), _disable_current_modes():
                local, stated = local_of(value)
                tensor = self._copies.of(local)
            self.nodes[name] = Seen(tensor, stated, self._clock, place)
            self._clock += 1

    def inputs_of(self, name: str) -> "list[Optional[torch.Tensor]]":
        """Returns the latest inputs of a module; DTensors are left out."""
        keys = self._inputs.get(name, [])
        latest = [self.values[key][-1] for key in keys if key in self.values]
        return [seen.tensor if seen.stated is None else None for seen in latest]

    def _add_all(self, kind: str, name: str, structure: Any, place: str) -> list:
        leaves, _ = tree_flatten_with_path(structure)
        added = []
        for path, leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                key = Key(kind, name, keystr(path))
                self.add(key, leaf, place)
                added.append((key, leaf))
        return added

    def called(self, call, module: nn.Module, args: tuple, kwargs: dict) -> Any:
        """Runs a call of a module and records it."""
        name = self.names.of(module)
        if name is None:
            return call(module, *args, **kwargs)
        if not self.modules and is_inferring_shapes():
            with watching(None):
                return call(module, *args, **kwargs)
        is_recomputed = torch._C._current_graph_task_id() != -1
        is_wrapped = bool(self.modules) and self.modules[-1] == name
        if is_recomputed or is_wrapped:
            # Checkpointing runs the module again within backward(). A wrapper has the
            # name of the module in it.
            self.modules.append(name)
            try:
                return call(module, *args, **kwargs)
            finally:
                self.modules.pop()
        if not self.modules and self._recorded_steps != self.steps:
            self._between_steps()
        place = user_place()
        self.places.setdefault(name, place)
        given = args[0] if len(args) == 1 and not kwargs else (args, kwargs)
        added = self._add_all("input", name, given, place)
        self._inputs[name] = [key for key, _ in added]
        self.modules.append(name)
        try:
            result = call(module, *args, **kwargs)
        finally:
            self.modules.pop()
        for key, tensor in self._add_all("output", name, result, place):
            if tensor.requires_grad and self._count(key):
                self._watch_gradient(key, tensor, place)
        return result

    def _count(self, key: Key) -> int:
        """Returns how often a value has been recorded."""
        return self._numbers.get(key, len(self.values.get(key, [])))

    def _watch_gradient(self, key: Key, tensor: torch.Tensor, place: str) -> None:
        own = Key("output gradient", key.name, key.path)
        number = self._count(key) - 1
        recorder = self

        def seen(gradient):
            recorder.add(own, gradient, place, number)

        try:
            tensor.register_hook(seen)
        except RuntimeError:
            # Some views of functions of the user accept no hook.
            pass

    def watch_order(self) -> None:
        """Notes when each gradient is complete in backward()."""

        def hook_of(name):
            def complete(parameter):
                self.gradient_order.setdefault(name, []).append(self._clock)
                self._clock += 1

            return complete

        for name, parameter in self.names.tensors("parameter").items():
            if parameter.requires_grad and parameter.is_leaf:
                parameter.register_post_accumulate_grad_hook(hook_of(name))

    def state_of_model(self, updated: bool) -> None:
        prefix = "updated " if updated else ""
        for kind in ("parameter", "buffer"):
            for name, tensor in self.names.tensors(kind).items():
                if not self._is_constant(name, tensor, updated):
                    self.add(Key(prefix + kind, name), tensor, self._owner_place(name))

    def _is_constant(self, name: str, tensor: torch.Tensor, updated: bool) -> bool:
        """Returns whether a tensor of the reference has integers that do not change,
        such as positions. The ranks may have other ones."""
        if tensor.is_floating_point() or tensor.is_complex() or self.lengths is None:
            return False
        if not updated:
            self._whole[name] = tensor.detach().clone()
        before = self._whole.get(name)
        return before is not None and torch.equal(before, tensor)

    def _owner_place(self, name: str) -> str:
        return self.places.get(name.rpartition(".")[0], "")

    def _gradients(self, parameters) -> None:
        for name, parameter in parameters:
            if parameter.grad is not None:
                self.add(
                    Key("gradient", name), parameter.grad, self._owner_place(name)
                )

    def _between_steps(self) -> None:
        """Records the parameters after some steps, before the next forward pass."""
        self._recorded_steps = self.steps
        self._updates += 1
        path = f" after update {self._updates}"
        for name, parameter in self.names.tensors("parameter").items():
            self.add(
                Key("updated parameter", name, path), parameter, self._owner_place(name)
            )

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        stepped = {
            id(parameter)
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        named = [
            (name, parameter)
            for name, parameter in self.names.tensors("parameter").items()
            if id(parameter) in stepped
        ]
        self._gradients(named)
        self.stepped.update(name for name, _ in named)

    def closure_of(self, optimizer: torch.optim.Optimizer, closure: Any) -> Any:
        """Returns a closure that records the gradients of its first call."""
        calls: "list[None]" = []

        def run(*args: Any, **kwargs: Any) -> Any:
            result = closure(*args, **kwargs)
            if not calls:
                self.before_step(optimizer)
            calls.append(None)
            return result

        return run

    @property
    def writes(self) -> int:
        """How often a parameter is written: an optimizer decays and updates it."""
        return 2 * max(self.steps, 1)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self.steps += 1
        if not any(optimizer is other for other in self._optimizers):
            self._optimizers.append(optimizer)

    def finish(self, result: Any) -> None:
        """Records what is left after the step."""
        self._gradients(
            (name, parameter)
            for name, parameter in self.names.tensors("parameter").items()
            if name not in self.stepped
        )
        self.state_of_model(updated=True)
        for name, parameter in self.names.tensors("parameter").items():
            for optimizer in self._optimizers:
                state = optimizer.state.get(parameter, {})
                for entry, value in state.items() if isinstance(state, dict) else ():
                    if isinstance(value, torch.Tensor) and value.dim() > 0:
                        self.add(Key("optimizer state", name, f".{entry}"), value)
        self._add_all("result", "", tree_map(as_tensor, result), "")
        self._optimizers = []
        self.names = Names()


_recordings = threading.local()


@contextlib.contextmanager
def watching(recording: Optional[Recording]) -> "Iterator[None]":
    """Records the calls that this thread makes."""
    before = current()
    _recordings.current = recording
    try:
        yield
    finally:
        _recordings.current = before


def current() -> Optional[Recording]:
    return getattr(_recordings, "current", None)


@contextlib.contextmanager
def watched_modules() -> "Iterator[None]":
    """Makes the calls of modules and optimizers known to the threads' recordings."""
    original = nn.Module.__call__

    def call(self, *args, **kwargs):
        recording = current()
        if recording is None:
            return original(self, *args, **kwargs)
        return recording.called(original, self, args, kwargs)

    def before(optimizer, args, kwargs):
        recording = current()
        if recording is None:
            return None
        # args has the optimizer, and may have a closure and other arguments.
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure):
            recording.before_step(optimizer)
            return None
        # The closure computes the gradients, so they are recorded after its call.
        run = recording.closure_of(optimizer, closure)
        if len(args) > 1:
            return (args[0], run, *args[2:]), kwargs
        return args, {**kwargs, "closure": run}

    def after(optimizer, args, kwargs):
        recording = current()
        if recording is not None:
            recording.after_step(optimizer)

    hooks = [
        register_optimizer_step_pre_hook(before),
        register_optimizer_step_post_hook(after),
    ]
    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = original  # type: ignore[method-assign]
        for hook in hooks:
            hook.remove()
