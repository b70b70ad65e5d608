"""Proves the strategies of one operator call against the unsharded operator.

Inputs are sharded and split into terms as the strategy demands, and every rank
runs its local program. The results are combined as the strategy claims: shards
side by side, partials reduced, replicas equal. The combined result must equal
that of the unsharded operator.
"""

import zlib

import torch

from . import partials
from .capture import TORCH_DTYPES, Operand, torch_op
from .inputs import draw_inputs, keeps_dtype, run_dtype
from .layouts import coordinates, parse, put, region_shape, regions, take
from .local_run import Draw, Runner

# Relative to the largest of the values or of the terms that make them up.
_TOLERANCE = {
    torch.complex128: 1e-9,
    torch.complex64: 3e-5,
    torch.float64: 1e-9,
    torch.float32: 3e-5,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
}

# These outputs (indices among those that are tensors) have undefined values:
# uninitialised memory, and the state that GPU kernels keep of their random
# streams.
_UNDEFINED = {
    "aten.empty_permuted.default": {0},
    "aten._scaled_dot_product_flash_attention.default": {2, 3, 4},
    "aten._flash_attention_forward.default": {2, 3, 4},
}


class Wrong(Exception):
    """A strategy's claim differs from the results."""


def undefined_results(call, returns, draw=None):
    """The results whose values cannot be compared, by index."""
    every = set(range(len(returns)))
    if call.op.split(".")[1].removeprefix("new_").startswith("empty"):
        return every
    seeded = torch.Tag.nondeterministic_seeded in torch_op(call.op).tags
    if not draw and seeded and _draws(call):
        return every
    return _UNDEFINED.get(call.op, set())


def _draws(call):
    """Whether an operator that may draw does so with these arguments."""
    if "attention" in call.op:
        return bool(call.arg("dropout_p"))
    return True


def _partial_dims(layout):
    return [d for d, entry in enumerate(layout) if parse(entry).kind == "P"]


def _partial_kinds(layout, mesh):
    dims = _partial_dims(layout)
    return tuple(parse(layout[d]).op for d in dims), tuple(mesh[d] for d in dims)


def _term(layout, mesh, at):
    """Which term a rank holds, the last partial mesh dim fastest."""
    index = 0
    for dim in _partial_dims(layout):
        index = index * mesh[dim] + at[dim]
    return index


def _largest(tensor):
    finite = tensor[torch.isfinite(tensor)] if tensor.is_floating_point() else tensor
    return float(finite.abs().max()) if finite.numel() else 0.0


def _tolerance(metas):
    """Returns the tolerance of the shortest float; operators that divide
    integers compute in f32."""
    dtypes = [TORCH_DTYPES[meta.dtype] for meta in metas]
    found = [_TOLERANCE[dtype] for dtype in dtypes if dtype in _TOLERANCE]
    if len(found) < len(dtypes):
        found.append(_TOLERANCE[torch.float32])
    return max(found, default=0.0)


def _written(call):
    """(operand, output) of tensors that are written in place: one memory, so one
    layout. Views in place have another shape afterwards."""
    op = torch_op(call.op)
    if torch.Tag.inplace_view in op.tags:
        return []
    outputs = {}  # by the name of the memory
    for o, result in enumerate(op._schema.returns):
        if result.alias_info is not None and result.alias_info.is_write:
            outputs |= dict.fromkeys(result.alias_info.before_set, o)
    return [
        (held.index, outputs[name])
        for argument in op._schema.arguments
        if isinstance(held := call.arg(argument.name), Operand)
        and argument.alias_info is not None
        for name in argument.alias_info.before_set
        if name in outputs
    ]


def _compare(found, wanted, tolerance, terms=(), *, finite_only=False):
    """Returns None, or the size of the difference. `terms` are the terms from
    which `found` was reduced."""
    if wanted.is_complex():
        found, wanted, *terms = (
            torch.view_as_real(value.resolve_conj())
            for value in (found, wanted, *terms)
        )
    if not wanted.is_floating_point():
        unequal = int((found != wanted).sum())
        return f"{unequal} of {wanted.numel()} elements differ" if unequal else None
    if finite_only:
        # No operator is linear in infinities.
        keep = torch.isfinite(wanted)
        found, wanted = found[keep], wanted[keep]
    if not wanted.numel():
        return None
    scale = max([1.0, _largest(wanted), *map(_largest, terms)])
    # The difference of equal infinities is NaN; allclose treats them as equal.
    if torch.allclose(
        found, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    ):
        return None
    return f"off by up to {float((found - wanted).abs().max()):g}"


class Proof:
    """One call with its inputs, its unsharded results, and caches of shards."""

    def __init__(self, call, seed, inputs=None):
        """Without `inputs` they are sampled, and floats run in f64; given ones
        run in their own dtypes."""
        self.call = call
        # Inputs depend on the call alone, not on its place in the list.
        self.generator = torch.Generator()
        self.generator.manual_seed(zlib.crc32(f"{seed} {call}".encode()))
        # Kernels that draw do so from the one global generator.
        torch.manual_seed(seed)
        self.own_dtypes = inputs is not None
        self.exact = self.own_dtypes or keeps_dtype(call)
        self.inputs = inputs or draw_inputs(call, self.generator)
        self.draw = Draw(call, self.generator)
        self.written = _written(call)
        own = [*call.inputs, *call.outputs]
        self.tolerance = _tolerance(own) if self.own_dtypes else 1e-9
        self.runner = Runner(call, self.draw, self.run_dtype)
        self.silent = self.runner.silent
        self.returns = [*call.outputs, *(call.inputs[index] for index in self.silent)]
        self.undefined = undefined_results(call, self.returns, self.draw)
        self.wanted = self.runner.alone(self.inputs)
        self._check_unsharded()
        self._terms = {}
        self._shards = {}

    def run_dtype(self, dtype):
        """The torch dtype in which a tensor of `dtype` runs."""
        return TORCH_DTYPES[dtype] if self.own_dtypes else run_dtype(self.call, dtype)

    def _check_unsharded(self):
        if len(self.wanted) != len(self.returns):
            raise Wrong("the operator gives other results than its graph says")
        for result, meta in zip(self.wanted, self.returns, strict=True):
            if tuple(result.shape) != meta.shape:
                raise Wrong("the operator gives other shapes than its graph says")
            if result.dtype != self.run_dtype(meta.dtype):
                raise Wrong(f"the operator gives {result.dtype}, not {meta.dtype}")

    def term(self, index, kinds, sizes, which):
        """A term of an input, or the input itself where nothing is partial."""
        if not kinds:
            return self.inputs[index]
        key = (index, kinds, sizes)
        if key not in self._terms:
            value = self.inputs[index]
            terms = partials.split(
                value, kinds, sizes, self.generator, exact=self.exact
            )
            self._terms[key] = [_laid_out_as(term, value) for term in terms]
        return self._terms[key][which]

    def shard(self, index, layout, mesh, rank):
        """Returns a rank's part of an input."""
        region = regions(layout, mesh, self.call.inputs[index].shape)[rank]
        kinds, sizes = _partial_kinds(layout, mesh)
        which = _term(layout, mesh, coordinates(mesh)[rank])
        if all(runs is None for runs in region):
            return self.term(index, kinds, sizes, which)
        key = (index, region, kinds, sizes, which if kinds else 0)
        if key not in self._shards:
            self._shards[key] = take(self.term(index, kinds, sizes, which), region)
        return self._shards[key]

    def check(self, strategy, mesh):
        """Raises Wrong, or any exception of a local operator."""
        inputs = [tuple(layout) for layout in strategy["inputs"]]
        outputs = [tuple(layout) for layout in strategy["outputs"]]
        outputs += [inputs[index] for index in self.silent]
        if len(inputs) != len(self.inputs) or len(outputs) != len(self.wanted):
            raise Wrong("the strategy has other operands than the operator")
        if self.draw and any(_partial_dims(layout) for layout in inputs):
            raise Wrong("a random operator takes a partial input")
        for i, o in self.written:
            if inputs[i] != outputs[o]:
                raise Wrong(f"output {o} does not lie as operand {i}, which it is")
        tensors = [
            [self.shard(i, layout, mesh, rank) for i, layout in enumerate(inputs)]
            for rank in range(len(coordinates(mesh)))
        ]
        drawn_regions = None
        if self.draw:
            shape = self.call.outputs[0].shape
            drawn_regions = regions(outputs[0], mesh, shape)
        results = self.runner.by_rank(strategy, mesh, tensors, drawn_regions)
        partial = any(_partial_dims(layout) for layout in inputs)
        for o, layout in enumerate(outputs):
            held = [by_rank[o] for by_rank in results]
            self.check_output(o, layout, mesh, held, finite_only=partial)

    def check_output(self, o, layout, mesh, held, *, finite_only=False):
        """Combines an output from the parts of the ranks. Raises Wrong."""
        wanted = self.wanted[o]
        shape = tuple(wanted.shape)
        where = regions(layout, mesh, shape)
        undefined = o in self.undefined
        kinds, sizes = _partial_kinds(layout, mesh)
        copies = {}  # by coordinate on the mesh dims that shard or are partial
        wholes = {}  # by term
        covered = {}
        for rank, at in enumerate(coordinates(mesh)):
            result = held[rank]
            if tuple(result.shape) != region_shape(where[rank], shape):
                raise Wrong(
                    f"output {o}: rank {rank} has shape {tuple(result.shape)}, "
                    f"not {region_shape(where[rank], shape)}"
                )
            if result.dtype != wanted.dtype:
                raise Wrong(f"output {o}: {result.dtype}, not {wanted.dtype}")
            if undefined:
                continue
            key = tuple(c for c, entry in zip(at, layout, strict=True) if entry != "R")
            if key in copies:
                if _compare(
                    result, copies[key], self.tolerance, finite_only=finite_only
                ):
                    raise Wrong(f"output {o}: replicas differ")
                continue
            copies[key] = result
            term = _term(layout, mesh, at)
            if term not in wholes:
                wholes[term] = torch.zeros(shape, dtype=wanted.dtype)
                covered[term] = torch.zeros(shape, dtype=torch.int8)
            if all(runs is None for runs in where[rank]):
                # Later shards are written to it; a zero tensor refuses that.
                wholes[term] = result.clone()
                covered[term] = covered[term] + 1
            else:
                put(wholes[term], where[rank], result)
                put(covered[term], where[rank], torch.ones((), dtype=torch.int8))
        if undefined:
            return
        if not all(bool((mask == 1).all()) for mask in covered.values()):
            raise Wrong(f"output {o}: shards leave elements out")
        terms = [wholes[term] for term in sorted(wholes)]
        found = partials.reduce(terms, kinds, sizes) if kinds else terms[0]
        apart = _compare(found, wanted, self.tolerance, terms, finite_only=finite_only)
        if apart:
            raise Wrong(f"output {o}: {apart}")


def _laid_out_as(term, value):
    """Terms of a broadcast tensor are broadcast too."""
    for dim, stride in enumerate(value.stride()):
        if stride == 0 and value.size(dim) > 1:
            return term.clone()
    laid_out = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return laid_out.copy_(term)


def prove(call, answers, seed, inputs=None):
    """Checks answers [(mesh, strategy)]; returns ([(mesh, strategy, why)])."""
    wrong = []
    try:
        proof = Proof(call, seed, inputs)
    except Exception as error:  # noqa: BLE001  (any failure is a finding)
        return [(None, None, f"unsharded: {_describe(error)}")]
    for mesh, strategy in answers:
        try:
            proof.check(strategy, mesh)
        except Exception as error:  # noqa: BLE001
            wrong.append((mesh, strategy, _describe(error)))
    return wrong


def _describe(error):
    text = str(error).strip().splitlines()
    first = text[0] if text else ""
    return first if isinstance(error, Wrong) else f"{type(error).__name__}: {first}"
