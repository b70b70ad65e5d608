"""install_propagator() makes eager DTensor ask our propagator."""

import atexit
import dataclasses
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._op_schema import OpSchema, OutputSharding
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.distributed.tensor.debug import _clear_sharding_prop_cache

from .. import _core
from .._error import Error
from . import (
    _attention,
    _local_call,
    _moved_views,
    _redistribution,
    _stale_views,
    _storage,
    _views_in_place,
)
from ._dispatch import Infos, in_numbers, measured, through, whole_key
from ._local_call import whole_spec
from ._operands import Operands, output_spec_of, require_reassembled
from ._specs import MeshSpecs, NotOurs, NotReassembled, is_lost

aten = torch.ops.aten

# DTensor's dispatcher handles these operators correctly without a propagator: sizes and
# memory of local tensors, and comparisons that it reduces over the ranks.
_STOCK = {
    aten.equal.default,
    aten.is_same_size.default,
    aten.is_pinned.default,
}
_RESULTS_UNKNOWN = "SP0506"
# DTensor's own answers to these views are wrong: it keeps partial sums and uneven shards,
# although the bits of a sum are not the sum of the bits.
_WRONG_IN_STOCK = {aten.view.dtype}
# Maximal characters of a reason in the statistics, which fill two lines of a terminal.
_LONGEST_REASON = 200
# DTensor's handlers of these operators would bypass ours.
_HANDLED = (
    aten.convolution.default,
    aten.convolution_backward.default,
    aten.argmin.default,
    aten.argmax.default,
    aten.as_strided.default,
)


@dataclasses.dataclass
class Statistics:
    """Statistics count the answers to calls that DTensor's caches did not hold."""

    ours: int = 0
    stock: int = 0
    #: By neither: they run on gathered inputs.
    gathered: int = 0
    #: Why an operator was not answered by ours, the last reason of each.
    reasons: "dict[str, str]" = dataclasses.field(default_factory=dict)


class Propagator(ShardingPropagator):
    """A propagator of DTensor that asks ours first. DTensor answers the remaining
    calls."""

    def __init__(self, stock: ShardingPropagator, topology: str, unknown: str):
        super().__init__()
        own = self.propagate_op_sharding
        self.__dict__.update(stock.__dict__)
        self.propagate_op_sharding = own
        # Any argument may change the answer of our propagator.
        self.op_to_schema_info = Infos(stock.op_to_schema_info)
        self.op_to_schema_info_for_single_dim_strategy = {}
        for infos in (
            stock.op_to_schema_info_for_single_dim_strategy,
            stock.op_to_schema_info,
        ):
            for op, info in infos.items():
                self.op_to_schema_info[op] = whole_key(op, info)
        self.stock = stock
        self.statistics = Statistics()
        self._topology = topology
        self._unknown = unknown
        self._specs = {}

    def specs_of(self, mesh) -> MeshSpecs:
        found = self._specs.get(mesh)
        if found is None:
            found = self._specs[mesh] = MeshSpecs(mesh, self._topology)
        return found

    def propagate_op_sharding_non_cached(self, op_schema: OpSchema) -> OutputSharding:
        return _moved_views.answered(op_schema, self._propagate)

    def _propagate(self, op_schema: OpSchema) -> OutputSharding:
        if _attention.shards_tokens(op_schema) and _attention.tokens_are_permuted():
            try:
                return super().propagate_op_sharding_non_cached(op_schema)
            except Exception as error:
                raise RuntimeError(_attention.refusal(error)) from error
        try:
            sharding = self._answer(op_schema)
        except (Error, NotOurs) as first:
            try:
                sharding = self._answer_by_another(op_schema)
            except (Error, NotOurs) as second:
                reason = second if isinstance(second, Error) else first
                return self._ask_stock(op_schema, reason)
        self.statistics.ours += 1
        return sharding

    def _ask_stock(self, op_schema: OpSchema, reason: Exception) -> OutputSharding:
        op = op_schema.op
        self.statistics.reasons[str(op)] = _in_brief(reason)
        if op in _handlers:
            return self._replicated(op_schema)
        try:
            answer = super().propagate_op_sharding_non_cached(op_schema)
        except NotImplementedError as error:
            # The dispatcher decomposes composite operators itself.
            if self._unknown == "gather" and _runs_whole(op):
                return self._replicated(op_schema)
            raise NotImplementedError(_both(error, reason)) from error
        except Exception as error:
            # If sizes depend on values, every rank needs all values. The operator can
            # only run on gathered inputs.
            only_way = isinstance(error, DynamicOutputShapeException)
            if (only_way or self._unknown == "gather") and _makes_tensors(op):
                return self._measured(op_schema)
            raise RuntimeError(_both(error, reason)) from error
        if _loses_layout(op_schema, answer):
            if not _runs_whole(op) or _writes(op):
                raise RuntimeError(_both(_unreadable(answer), reason))
            return self._replicated(op_schema)
        self.statistics.stock += 1
        return answer

    def _quiet_stock(self, op_schema: OpSchema) -> Optional[OutputSharding]:
        """Returns DTensor's own answer if it moves no operand."""
        try:
            answer = super().propagate_op_sharding_non_cached(op_schema)
        except Exception:
            return None
        if answer.needs_redistribute or _loses_layout(op_schema, answer):
            return None
        return answer

    def _replicated(self, op_schema: OpSchema) -> OutputSharding:
        """Answers with all inputs gathered, for operators whose DTensor handler is
        removed."""
        made = self._propagate_tensor_meta_non_cached(op_schema)
        operands = Operands(op_schema)
        mesh = operands.mesh()
        output_spec = (
            whole_spec(mesh, made)
            if isinstance(made, TensorMeta)
            else tuple(meta and whole_spec(mesh, meta) for meta in made)
        )
        moves = operands.gathering()
        call = _local_call.MovedCall(op_schema.op, moves, operands.slots)
        self.statistics.gathered += 1
        return through(call, op_schema, output_spec)

    def _measured(self, op_schema: OpSchema) -> OutputSharding:
        """Answers with all inputs gathered, for operators whose result shapes depend on
        values."""
        operands = Operands(op_schema)
        call = _local_call.MeasuredCall(
            op_schema.op,
            operands.gathering(),
            operands.slots,
            operands.mesh(),
        )
        self.statistics.gathered += 1
        return measured(call, op_schema)

    def _answer(self, op_schema: OpSchema) -> OutputSharding:
        op = op_schema.op
        if op in _STOCK:
            raise NotOurs("DTensor's dispatcher runs it itself")
        if _draws(op_schema):
            raise NotOurs("which rank draws which random numbers is DTensor's matter")
        call, output_spec = self._call_of(op, op_schema)
        if _attention.shards_tokens(op_schema):
            return through(_attention.InOrder(call), op_schema, output_spec)
        if call.is_plain():
            return OutputSharding(output_spec)
        if op not in _WRONG_IN_STOCK and (
            call.moves_strided() or (call.copies() and _makes_views(op))
        ):
            # Few of our operators support strided shards or shards of dims of size 1. A
            # view without moves shares memory.
            quiet = self._quiet_stock(op_schema)
            if quiet is not None:
                return quiet
        if not self.op_to_schema_info.get(op).needs_pytree:
            written = call.written_out(op_schema.args_schema)
            if written is not None:
                return in_numbers(*written, op_schema, output_spec)
        return through(call, op_schema, output_spec)

    def _call_of(self, op, op_schema: OpSchema):
        """Returns the call that the ranks run for `op` on these arguments, and the
        output spec.

        If DTensor cannot reassemble the results, or a layout on the way to the
        inputs, the inputs are first gathered over one mesh dim, then over all.
        """
        operands = Operands(op_schema)
        if not operands.specs:
            raise NotOurs("no argument is a tensor")
        mesh = operands.mesh()
        try:
            return self._call_at(op, op_schema, operands, operands.specs)
        except NotReassembled as error:
            refused = error
        for mesh_dims in ([m] for m in reversed(range(mesh.ndim))):
            gathered = operands.gathered_over(mesh_dims)
            if gathered is not None:
                try:
                    return self._call_at(op, op_schema, operands, gathered)
                except NotReassembled:
                    pass
        gathered = operands.gathered_over(range(mesh.ndim))
        if gathered is None:
            raise refused
        return self._call_at(op, op_schema, operands, gathered)

    def _call_at(self, op, op_schema: OpSchema, operands: Operands, at: list):
        """Does the same for operands that first move to the specs `at`."""
        specs = self.specs_of(operands.specs[0].mesh)
        args, kwargs = operands.ours(specs, at)
        try:
            found = specs.core.propagate(str(op), args, kwargs)
        except Error as error:
            if error.code != _RESULTS_UNKNOWN:
                raise
            results = self._results(OpSchema(op, *_arguments(op_schema)), specs)
            found = specs.core.propagate(str(op), args, kwargs, results)
        output_spec = output_spec_of(op, found, specs)
        moves = {}
        for index, (given, spec) in enumerate(zip(operands.specs, at)):
            path = [given]
            if spec != given:
                path = self._path(specs, given, spec)
            path += _redistribution.path_of(specs, spec, found.moves.get(index, []))[1:]
            if len(path) > 1:
                require_reassembled(given)
                moves[index] = _redistribution.Walk(path)
        kernel = _storage.kernel_of(op, operands.specs)
        call = _local_call.LocalCall(op, found, specs, moves, operands.slots, kernel)
        return call, output_spec

    def _path(self, specs: MeshSpecs, src, dst) -> list:
        steps = specs.core.redistribute(specs.ours(src), specs.ours(dst))
        # The last layout is `dst`, perhaps in another notation.
        return [*_redistribution.path_of(specs, src, steps[:-1]), dst]

    def _results(self, op_schema: OpSchema, specs: MeshSpecs) -> list:
        """Returns the metas of the operator's results on fake tensors."""
        try:
            made = self._propagate_tensor_meta_non_cached(op_schema)
        except Exception as error:
            raise NotOurs(f"its results are not known: {error}") from error
        if made is None:
            raise NotOurs("it returns no tensor")
        metas = [made] if isinstance(made, TensorMeta) else made
        return [meta and specs.ours(whole_spec(specs.mesh, meta)) for meta in metas]

    def _answer_by_another(self, op_schema: OpSchema) -> OutputSharding:
        """Answers with another operator that computes the same."""
        view = _viewing(op_schema.op)
        if view is None:
            return self._answer_in_place(op_schema)
        return self._answer_copy(view, op_schema)

    def _answer_copy(self, view, op_schema: OpSchema) -> OutputSharding:
        """ Answers squeeze_copy and similar operators by a copy of the view."""
        call, output_spec = self._call_of(view, op_schema)
        return through(_local_call.Copied(call), op_schema, output_spec)

    def _answer_in_place(self, op_schema: OpSchema) -> OutputSharding:
        """If an in-place operator cannot keep the layout of its tensor, the functional
        operator runs. Its result is redistributed to the layout of the tensor."""
        functional = _functional(op_schema.op)
        target = op_schema.args_schema[0]
        if functional is None or not isinstance(target, DTensorSpec):
            raise NotOurs("it does not write its first argument alone")
        call, made = self._call_of(functional, op_schema)
        meta = target.tensor_meta
        if not isinstance(made, DTensorSpec) or made.tensor_meta.shape != meta.shape:
            raise NotOurs("its result is of another shape")
        made = DTensorSpec(made.mesh, made.placements, tensor_meta=meta)
        specs = self.specs_of(target.mesh)
        # No shard can become a partial term, so the result is replicated first.
        between = DTensorSpec(
            made.mesh,
            tuple(Replicate() if p.is_partial() else p for p in target.placements),
            tensor_meta=meta,
        )
        require_reassembled(target)
        steps = specs.core.redistribute(specs.ours(made), specs.ours(between))
        path = _redistribution.path_of(specs, made, steps)
        back = _redistribution.Walk([*path, target])
        writer = _local_call.WrittenBack(op_schema.op, call, back)
        return through(writer, op_schema, target)


def _in_brief(reason: Exception) -> str:
    """Returns a shortened first line: an error may quote a call with thousands of
    tensors."""
    line = str(reason).partition("\n")[0]
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}..."


def _both(stock: Exception, ours: Exception) -> str:
    return f"{stock}\n\nshardprop could not answer either: {ours}"


def _specs_in(value: Any) -> "list[DTensorSpec]":
    if isinstance(value, (list, tuple)):
        return [spec for item in value for spec in _specs_in(item)]
    return [value] if isinstance(value, DTensorSpec) else []


def _loses_layout(op_schema: OpSchema, answer: OutputSharding) -> bool:
    """Returns whether DTensor's answer has results that it cannot reassemble, although
    it can reassemble the operands."""
    if not any(is_lost(spec) for spec in _specs_in(answer.output_spec)):
        return False
    return not any(is_lost(spec) for spec in _specs_in(op_schema.args_schema))


def _unreadable(answer: OutputSharding) -> RuntimeError:
    lost = next(s for s in _specs_in(answer.output_spec) if is_lost(s))
    return RuntimeError(
        f"DTensor cannot reassemble {lost.placements} of "
        f"{list(lost.tensor_meta.shape)}, which is its own answer"
    )


def _makes_views(op) -> bool:
    return any(
        r.alias_info is not None and not r.alias_info.is_write
        for r in op._schema.returns
    )


def _writes(op) -> bool:
    return any(
        a.alias_info is not None and a.alias_info.is_write
        for a in op._schema.arguments
    )


def _is_composite(op) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(
        op.name(), torch._C.DispatchKey.CompositeImplicitAutograd
    )


def _runs_whole(op) -> bool:
    """Returns whether equal inputs give equal results on every rank. Random numbers
    differ between ranks."""
    return not _is_composite(op) and torch.Tag.nondeterministic_seeded not in op.tags


def _draws(op_schema: OpSchema) -> bool:
    """Returns whether a call draws random numbers."""
    op = op_schema.op
    if torch.Tag.nondeterministic_seeded not in op.tags:
        return False
    given = dict(op_schema.kwargs_schema)
    declared = op._schema.arguments
    given.update(zip((a.name for a in declared), op_schema.args_schema))
    for argument in declared:
        value = given.get(argument.name, argument.default_value)
        if argument.name in ("dropout_p", "dropout") and value == 0:
            return False
        if argument.name in ("train", "training") and value is False:
            return False
    return True


def _makes_tensors(op) -> bool:
    """Returns whether the operator writes no argument and returns tensors that are not
    views."""
    schema = op._schema
    return (
        _runs_whole(op)
        and all(argument.alias_info is None for argument in schema.arguments)
        and all(str(returned.type) == "Tensor" for returned in schema.returns)
    )


def _arguments(op_schema: OpSchema):
    return op_schema.args_schema, op_schema.kwargs_schema


def _viewing(op):
    """Returns aten.squeeze.dim for aten.squeeze_copy.dim, and None for other
    operators."""
    if op.namespace != "aten" or not op._opname.endswith("_copy"):
        return None
    packet = getattr(aten, op._opname.removesuffix("_copy"), None)
    return getattr(packet, op._overloadname, None)


def _functional(op):
    """Returns aten.sqrt.default for aten.sqrt_.default."""
    name = op._opname
    if not name.endswith("_") or name.endswith("__") or op.namespace != "aten":
        return None
    packet = getattr(aten, name[:-1], None)
    return getattr(packet, op._overloadname, None) if packet is not None else None


_replaced: Optional[ShardingPropagator] = None
_replicated_before = False
_handlers: "dict[Any, Any]" = {}


def install_propagator(
    topology: str = "dgx-h100",
    *,
    unknown: str = "error",
    implicit_replication: bool = False,
) -> Propagator:
    """Makes PyTorch's eager DTensor ask this library how operators run sharded.

    >>> sp.torch.install_propagator()
    >>> y = torch.softmax(x, -1)    # x sharded in its last dim: stays so

    DTensor still answers operators that the library does not know and layouts that it
    cannot express. If neither can answer, the error gives both reasons. All
    redistributions follow our plans, including explicit ones. `topology`, a preset or a
    file, prices them. Operators whose result sizes depend on values
    (`torch.nonzero(x)`, `x[x > 0]`) run on gathered inputs. With `unknown="gather"`, so
    does every operator that neither knows, except operators that draw random numbers.
    With `implicit_replication` plain tensors among DTensors count as replicated; all
    ranks must hold the same. Returns the propagator, whose `statistics` count the
    calls. A second call changes the options.

    Raises Error for an unknown topology or an unknown value of `unknown`.
    """
    global _replaced, _replicated_before
    if unknown not in ("error", "gather"):
        raise Error(
            "SP0001",
            f"`unknown` is {unknown!r}",
            "install_propagator()",
            [],
            "'error' or 'gather'",
        )
    _core.Propagator([("d0", 1)], [], topology)  # is there such a topology?
    if _replaced is not None:
        uninstall_propagator()
    dispatcher = DTensor._op_dispatcher
    ours = Propagator(dispatcher.sharding_propagator, topology, unknown)
    _replicated_before = dispatcher._allow_implicit_replication
    if implicit_replication:
        dispatcher._allow_implicit_replication = True
    _replaced = dispatcher.sharding_propagator
    dispatcher.sharding_propagator = ours
    for op in _HANDLED:
        handler = dispatcher._custom_op_handlers.pop(op, None)
        if handler is not None:
            _handlers[op] = handler
    _redistribution.install(ours.specs_of)
    _stale_views.install()
    _views_in_place.install(dispatcher)
    _clear_sharding_prop_cache()
    return ours


def uninstall_propagator() -> None:
    """Restores DTensor. It does nothing if the propagator is not installed."""
    global _replaced
    if _replaced is None:
        return
    dispatcher = DTensor._op_dispatcher
    dispatcher.sharding_propagator = _replaced
    _views_in_place.uninstall(dispatcher)
    dispatcher._allow_implicit_replication = _replicated_before
    dispatcher._custom_op_handlers.update(_handlers)
    _handlers.clear()
    _redistribution.uninstall()
    _stale_views.uninstall()
    _replaced = None
    _clear_sharding_prop_cache()


# Objects of the extension must be freed before the extension is unloaded.
atexit.register(uninstall_propagator)
