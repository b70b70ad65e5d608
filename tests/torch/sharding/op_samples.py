"""Operator calls that PyTorch's own samples make, with the values of their operands.

    samples = SampleCalls()
    samples.record_operators()
    for op, drawn in samples.by_operator().items(): ...

The samples of the operator, foreach and optimizer databases run with their
backward passes under a dispatch mode. It sees the calls that are left below
autograd and below composite operators, and keeps each distinct call once.
"""

import contextlib
import signal
import warnings

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .capture import TORCH_DTYPES, call_of, flat_tensors
from .drawn_calls import Drawn

# These arguments determine a tensor's place, not its values.
_OF_THE_DEVICE = ("device", "layout", "pin_memory", "non_blocking", "generator")
_SECONDS = 60  # for the samples of one entry
_LARGEST = 1 << 14  # elements of a result that is worth a proof
_LARGEST_VALUE = 1e30
_NAMESPACES = ("aten", "prims")


class _TooLong(Exception):
    pass


@contextlib.contextmanager
def _at_most(seconds):
    def give_up(_signal, _frame):
        raise _TooLong

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def exact_copy(tensor):
    """Returns a copy with the same bytes and strides, even if elements
    overlap."""
    storage = tensor.untyped_storage().clone()
    copy = torch.empty(0, dtype=tensor.dtype)
    copy.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
    if copy.is_floating_point():
        # The memory is uninitialised: terms of such values overflow.
        copy[torch.isfinite(copy) & (copy.abs() > _LARGEST_VALUE)] = 1
    return copy


def _plain(value):
    """Whether a line of JSON can say it, and a proof can hold it."""
    if isinstance(value, torch.Tensor):
        return (
            type(value) in (torch.Tensor, torch.nn.Parameter)
            and value.layout == torch.strided
            and value.device.type == "cpu"
            and value.dtype in TORCH_DTYPES.values()
            and not value.is_conj()
            and not value.is_neg()
        )
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    known = (bool, int, float, str, torch.dtype, torch.memory_format, type(None))
    return isinstance(value, known)


def _by_name(schema, args, kwargs):
    """The arguments by declared name, without those of the device."""
    declared = [argument.name for argument in schema.arguments]
    given = dict(zip(declared, args, strict=False)) | kwargs
    defaults = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    return {
        name: value
        for name, value in given.items()
        if name not in _OF_THE_DEVICE
        and not (value is None and name in defaults and defaults[name] is None)
    }


def _alike(call):
    """Returns a key that is equal for calls that differ only in floats of one
    sign (the steps of an optimizer do): these scale a result, and change no
    layout."""

    def kind(value):
        if isinstance(value, tuple):
            return tuple(map(kind, value))
        if not isinstance(value, float):
            return value
        # Zero, one, infinities and NaN are kinds of their own.
        known = value in (0, 1) or value - value != 0
        return repr(value) if known else f"{value > 0} {value == int(value)}"

    return call._replace(args=tuple((name, kind(value)) for name, value in call.args))


class SampleCalls(TorchDispatchMode):
    """Keeps the distinct calls that run under it."""

    def __init__(self):
        super().__init__()
        self.calls = {}  # Drawn, by what makes calls alike
        self.entries = 0
        self.left_out = {}  # why, by operator
        self.failed = []  # samples that PyTorch itself refuses

    def by_operator(self):
        found = {}
        for drawn in self.calls.values():
            found.setdefault(drawn.call.op, []).append(drawn)
        return found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = str(func)
        given = _by_name(func._schema, args, kwargs)
        if func.namespace not in _NAMESPACES:
            return func(*args, **kwargs)
        if not _plain(list(given.values())):
            self.left_out[name] = "has arguments that are not plain values or tensors"
            return func(*args, **kwargs)
        before = pytree.tree_map_only(torch.Tensor, exact_copy, given)
        results = func(*args, **kwargs)
        self._keep(name, before, results)
        return results

    def _keep(self, name, given, results):
        results = flat_tensors(results)
        if not _plain(results):
            self.left_out.setdefault(name, "returns no plain tensor")
            return
        if max((r.numel() for r in results), default=0) > _LARGEST:
            self.left_out.setdefault(name, "returns too many elements")
            return
        call, inputs = call_of(name, given, results)
        self.calls.setdefault(_alike(call), Drawn(call, tuple(inputs)))

    def _run(self, name, function):
        self.entries += 1
        torch.manual_seed(0)
        try:
            with _at_most(_SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function()
        except _TooLong:
            self.failed.append((name, "takes too long"))

    def _differentiate(self, name, function):
        """Forward, and backward from every result that has a gradient."""
        try:
            with self:
                results = flat_tensors_of(function())
                wanted = [r for r in results if r.requires_grad and r.numel()]
                if wanted:
                    # Not all ones: as a loss would give.
                    ramps = [_ramp(result) for result in wanted]
                    torch.autograd.backward(wanted, ramps)
        except _TooLong:
            raise
        except Exception as error:  # noqa: BLE001  (torch refuses by any exception)
            self.failed.append((name, f"{type(error).__name__}: {error}".split("\n")[0]))

    def record_operators(self, wanted=lambda name: True, dtype=torch.float32):
        """Yields the samples of op_db."""
        from torch.testing._internal.common_methods_invocations import op_db

        for op in op_db:
            name = f"{op.name}.{op.variant_test_name}".rstrip(".")
            if op.supports_dtype(dtype, "cpu") and wanted(name):
                grad = op.supports_autograd

                def every_sample(op=op, name=name, grad=grad):
                    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
                        args = (sample.input, *sample.args)
                        self._differentiate(name, lambda: op.op(*args, **sample.kwargs))

                self._run(name, every_sample)

    def record_foreach(self, wanted=lambda name: True, dtype=torch.float32):
        """Yields samples of the foreach databases, in place and out of
        place."""
        from torch.testing._internal import common_methods_invocations as suite

        databases = [n for n in dir(suite) if n.startswith("foreach_") and n.endswith("_op_db")]
        for op in (op for database in databases for op in getattr(suite, database)):
            if not op.supports_dtype(dtype, "cpu") or not wanted(op.name):
                continue

            def every_sample(op=op):
                for sample in op.sample_inputs("cpu", dtype):
                    for form in (op.method_variant, op.inplace_variant):
                        if form is None:
                            continue
                        args = _detached([sample.input, *sample.args])
                        self._differentiate(
                            op.name, lambda: form(*args, **_detached(sample.kwargs))
                        )

            self._run(op.name, every_sample)

    def record_optimizers(self, wanted=lambda name: True):
        """Runs two steps of every optimizer, one tensor at a time, foreach and
        fused."""
        from torch.testing._internal.common_optimizers import optim_db

        for info in optim_db:
            name = info.optim_cls.__name__
            if not wanted(name):
                continue

            def every_input(info=info, name=name):
                for given in info.optim_inputs_func(device="cpu"):
                    for form in ({}, {"foreach": True}, {"fused": True}):
                        kwargs = given.kwargs | form
                        self._differentiate(name, lambda: _steps(info.optim_cls, kwargs))

            self._run(name, every_input)


def _steps(optimizer_class, kwargs):
    """Parameters of 1 and 2 dims with gradients; LBFGS calls the loss itself."""
    torch.manual_seed(0)
    parameters = [
        torch.nn.Parameter(torch.randn(shape)) for shape in ((5, 4), (5, 4), (7, 5))
    ]
    optimizer = optimizer_class(parameters, **kwargs)

    def loss():
        optimizer.zero_grad()
        value = sum((p.sin() * (i + 1)).sum() for i, p in enumerate(parameters))
        value.backward()
        return value

    for _ in range(2):
        loss()
        optimizer.step(loss)
    return []


def _detached(tree):
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), tree)


def flat_tensors_of(tree):
    """The tensors of any structure that an operator of the databases returns."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _ramp(result):
    """A gradient whose elements differ, of its dtype."""
    ramp = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64)
    return ramp.view(result.shape).to(result.dtype)
