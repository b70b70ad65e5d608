"""Runs the local program of a strategy on every rank of a simulated mesh.

A rank runs the operator itself with some scalar arguments of its own, or a list
of steps. Collectives inside run in lockstep: every rank finishes a step before
any starts the next.
"""

import torch

import cuda_attention_kernels
import cuda_product_kernels  # noqa: F401

from . import collectives
from .capture import TORCH_DTYPES, Operand, flat_tensors, number, torch_op
from .layouts import take

_IGNORED = ("device", "layout", "pin_memory", "non_blocking")
_MEMORY_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "preserve_format": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}


def _scalar(run_dtype, name, value):
    """A scalar argument as torch takes it."""
    if value is None:
        return None
    if isinstance(value, str) and value in TORCH_DTYPES:
        return run_dtype(value)
    if name == "memory_format":
        return _MEMORY_FORMATS[value]
    if isinstance(value, (list, tuple)):
        return [number(element) for element in value]
    return number(value)


class Draw:
    """The values that a random operator samples, one per element of the full
    tensor.

    Every rank looks up the elements it holds: replicas agree, and shards are
    cut from the unsharded draw.
    """

    def __init__(self, call, generator):
        self.op = call.op
        self.kept = None
        self.p = 0.0
        if self.is_dropout:
            self.p = call.arg("p")
            shape = call.outputs[1].shape
        elif "attention" in call.op and call.arg("dropout_p"):
            self.p = call.arg("dropout_p")
            query, key = call.arg("query").index, call.arg("key").index
            shape = (*call.inputs[query].shape[:3], call.inputs[key].shape[2])
        else:
            return
        self.kept = torch.rand(shape, generator=generator) >= self.p

    def __bool__(self):
        return self.kept is not None

    def run(self, args, region=None):
        """Calls the operator with this draw; `region` is the part of output 0
        on the rank."""
        kept = self.kept
        if region is not None:
            # Attention weights have the queries of output 0 and all keys.
            kept = take(kept, region if self.is_dropout else (*region[:3], None))
        if self.is_dropout:
            return args["input"] * kept / (1 - self.p), kept
        with cuda_attention_kernels.dropout(kept):
            return torch_op(self.op)(**args)

    @property
    def is_dropout(self):
        return self.op.startswith("aten.native_dropout.")


def written_silently(call):
    """The operands that the operator writes and does not return."""
    schema = torch_op(call.op)._schema
    returned = {
        name
        for result in schema.returns
        if result.alias_info is not None
        for name in result.alias_info.before_set
    }
    found = []
    for argument in schema.arguments:
        alias = argument.alias_info
        if alias is None or not alias.is_write or alias.before_set & returned:
            continue
        held = call.arg(argument.name)
        for element in held if isinstance(held, tuple) else (held,):
            if isinstance(element, Operand):
                found.append(element.index)
    return found


class Runner:
    """Runs one call, unsharded or by rank. Values that it writes without
    returning them follow its results."""

    def __init__(self, call, draw, run_dtype):
        self.call = call
        self.run_dtype = run_dtype
        self.draw = draw
        self._results = {}  # of the operator alone, by what it was given
        schema = torch_op(call.op)._schema
        self.writes = schema.is_mutable
        self.silent = written_silently(call)
        self.takes_device = any(
            argument.name == "device" and not argument.has_default_value()
            for argument in schema.arguments
        )

    def _given(self, tensors, index, written):
        given = tensors[index].clone() if self.writes else tensors[index]
        written[index] = given
        return given

    def _arguments(self, tensors, local, written):
        """By name; `written` gets the operands by index, as the operator sees them."""
        args = {"device": "cpu"} if self.takes_device else {}
        for name, value in self.call.args:
            if name in _IGNORED:
                continue
            if isinstance(value, Operand):
                args[name] = self._given(tensors, value.index, written)
            elif isinstance(value, tuple) and any(
                isinstance(element, Operand) for element in value
            ):
                args[name] = [
                    e and self._given(tensors, e.index, written) for e in value
                ]
            else:
                args[name] = _scalar(self.run_dtype, name, local.get(name, value))
        for name, value in local.items():
            args.setdefault(name, value)
        return args

    def alone(self, tensors, local=(), region=None):
        """Returns the operator's results on these tensors."""
        local = dict(local)
        written = {}
        if self.draw:
            args = self._arguments(tensors, local, written)
            return flat_tensors(self.draw.run(args, region))
        key = (*map(id, tensors), repr(sorted(local.items())))
        if key not in self._results:
            # The tensors are kept, so that their ids stay theirs.
            results = torch_op(self.call.op)(**self._arguments(tensors, local, written))
            silent = [written[index] for index in self.silent]
            self._results[key] = (flat_tensors(results) + silent, tensors)
        return self._results[key][0]

    def by_rank(self, strategy, mesh, tensors, output_regions):
        """Results by rank; `tensors` and `output_regions` are by rank too."""
        if "local_program" in strategy:
            return self._program(strategy["local_program"], mesh, tensors)
        results = []
        for rank in range(len(tensors)):
            local = {n: v[rank] for n, v in strategy["local_args"].items()}
            region = output_regions[rank] if output_regions else None
            results.append(self.alone(tensors[rank], local, region))
        return results

    def _program(self, program, mesh, tensors):
        ranks = range(len(tensors))
        values = [[] for _ in ranks]  # by rank, by step: results

        def resolve(reference, rank):
            if "input" in reference:
                return tensors[rank][reference["input"]]
            return values[rank][reference["step"]][reference["result"]]

        def argument(name, value, rank):
            if isinstance(value, dict):
                if "per_rank" in value:
                    return value["per_rank"][rank]
                return resolve(value, rank)
            if isinstance(value, list) and any(isinstance(v, dict) for v in value):
                return [v and resolve(v, rank) for v in value]
            return _scalar(self.run_dtype, name, value)

        for step in program["steps"]:
            if "collective" in step:
                held = [resolve(step["value"], rank) for rank in ranks]
                results = collectives.run(step, mesh, held)
                for rank, result in enumerate(results):
                    values[rank].append([result])
                continue
            op = torch_op(step["op"])
            for rank in ranks:
                args = {
                    name: argument(name, value, rank)
                    for name, value in step["args"].items()
                }
                if op._schema.is_mutable:
                    # Operands are shared between strategies.
                    args = {
                        name: value.clone()
                        if isinstance(value, torch.Tensor)
                        else value
                        for name, value in args.items()
                    }
                values[rank].append(flat_tensors(op(**args)))
        return [
            [resolve(reference, rank) for reference in program["outputs"]]
            for rank in ranks
        ]
