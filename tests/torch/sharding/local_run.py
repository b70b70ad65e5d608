"""Runs the local program of a strategy on every rank of a simulated mesh.

A rank runs the operator itself with some scalar arguments of its own, or a list
of steps. Collectives inside run in lockstep: every rank finishes a step before
any starts the next.
"""

import torch

import cuda_attention_kernels

from . import partials
from .capture import TORCH_DTYPES, Operand, number, torch_op
from .inputs import run_dtype
from .layouts import coordinates, take

_IGNORED = ("device", "layout", "pin_memory", "non_blocking")
_MEMORY_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "preserve_format": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}


def _scalar(call, name, value):
    """A scalar argument as torch takes it."""
    if value is None:
        return None
    if name == "dtype":
        return run_dtype(call, value) if value in TORCH_DTYPES else value
    if name == "memory_format":
        return _MEMORY_FORMATS[value]
    if isinstance(value, (list, tuple)):
        return [number(element) for element in value]
    return number(value)


def _flat(results):
    """The tensors among an operator's results, lists opened."""
    if isinstance(results, torch.Tensor):
        return [results]
    if results is None or isinstance(results, int):
        return []
    return [tensor for result in results for tensor in _flat(result)]


class Draw:
    """What a random operator draws, per element of the whole tensor.

    Every rank looks up the elements it holds: replicas agree, and shards are
    cut from the unsharded draw.
    """

    def __init__(self, call, generator):
        self.op = call.op
        self.kept = None
        self.p = 0.0
        if call.op == "aten.native_dropout.default":
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
        """The operator with this draw; `region` is what output 0 holds."""
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
        return self.op == "aten.native_dropout.default"


class Runner:
    """Runs one call, whole or by rank."""

    def __init__(self, call, draw):
        self.call = call
        self.draw = draw
        self._results = {}  # of the operator alone, by what it was given
        self.writes = torch_op(call.op)._schema.is_mutable

    def _arguments(self, tensors, local):
        args = {}
        for name, value in self.call.args:
            if name in _IGNORED:
                continue
            if isinstance(value, Operand):
                held = tensors[value.index]
                args[name] = held.clone() if self.writes else held
            elif isinstance(value, tuple) and any(
                isinstance(element, Operand) for element in value
            ):
                args[name] = [e and tensors[e.index] for e in value]
            else:
                args[name] = _scalar(self.call, name, local.get(name, value))
        for name, value in local.items():
            args.setdefault(name, value)
        return args

    def alone(self, tensors, local=(), region=None):
        """The operator's results on these tensors."""
        local = dict(local)
        if self.draw:
            return _flat(self.draw.run(self._arguments(tensors, local), region))
        key = (*map(id, tensors), repr(sorted(local.items())))
        if key not in self._results:
            # The tensors are kept, so that their ids stay theirs.
            results = torch_op(self.call.op)(**self._arguments(tensors, local))
            self._results[key] = (_flat(results), tensors)
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
            return _scalar(self.call, name, value)

        for step in program["steps"]:
            if "collective" in step:
                held = [resolve(step["value"], rank) for rank in ranks]
                for rank, result in enumerate(_all_reduce(step, mesh, held)):
                    values[rank].append([result])
                continue
            for rank in ranks:
                args = {
                    name: argument(name, value, rank)
                    for name, value in step["args"].items()
                }
                values[rank].append(_flat(torch_op(step["op"])(**args)))
        return [
            [resolve(reference, rank) for reference in program["outputs"]]
            for rank in ranks
        ]


def _all_reduce(step, mesh, held):
    over = {int(name.removeprefix("d")) for name in step["mesh_dims"]}
    groups = {}
    for rank, at in enumerate(coordinates(mesh)):
        key = tuple(c for d, c in enumerate(at) if d not in over)
        groups.setdefault(key, []).append(rank)
    results = [None] * len(held)
    for group in groups.values():
        terms = [held[rank] for rank in group]
        if len({term.shape for term in terms}) != 1:
            raise ValueError("an all-reduce of values that differ in shape")
        total = partials.reduce(terms, [step["reduce_op"]], [len(group)])
        for rank in group:
            results[rank] = total
    return results
