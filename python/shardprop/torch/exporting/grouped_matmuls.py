"""as_aten() rewrites experts' matmuls to PyTorch's own operator.

PyTorch's own grouped matmul can be traced in bf16 only. In other dtypes, the mixtures
of experts of transformers call operators of transformers, which no program of a rank
can run. Here they become aten._grouped_mm, which runs in all dtypes:

    transformers.grouped_mm_fallback(x, w, offs)     x [t,k], w [g,k,n] -> [t,n]
        = _grouped_mm(x, w, offs)
    transformers.grouped_mm_fallback_backward(x, w, offs, grad)
        = _grouped_mm(grad, w^T, offs), _grouped_mm(x^T, grad, offs)
"""

import itertools
import operator

import torch

_FORWARD = "transformers::grouped_mm_fallback"
_BACKWARD = "transformers::grouped_mm_fallback_backward"
# The kernels need rows of operands and results to start at multiples of this number.
_ALIGNMENT_BYTES = 16


def _name(node: torch.fx.Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return "" if schema is None else schema.name


def _is_aligned(value: torch.Tensor) -> bool:
    row, column = value.stride()[-2:]
    other = row if column == 1 else column
    return 1 in (row, column) and other * value.itemsize % _ALIGNMENT_BYTES == 0


def _in_order(shape):
    return [*itertools.accumulate([1, *shape[:0:-1]], operator.mul)][::-1]


class _Rewriter:
    """A _Rewriter adds calls of operators in place of a node, with its metadata."""

    def __init__(self, graph: torch.fx.Graph, node: torch.fx.Node):
        self._graph = graph
        self._node = node

    def _call(self, target, args, shape, strides):
        like = self._node.args[0].meta["val"]
        made = self._graph.call_function(target, args)
        made.meta = {k: v for k, v in self._node.meta.items() if k != "tensor_meta"}
        with like.fake_mode:
            made.meta["val"] = torch.empty_strided(
                shape, strides, dtype=like.dtype, device=like.device
            )
        return made

    def transposed(self, of):
        value = of.meta["val"]
        dims = [*range(value.dim() - 2), value.dim() - 1, value.dim() - 2]
        return self._call(
            torch.ops.aten.permute.default,
            (of, dims),
            [value.size(d) for d in dims],
            [value.stride(d) for d in dims],
        )

    def matmul(self, a, b, offsets):
        """Adds a grouped matmul whose result is contiguous, as in the traced program;
        the kernel itself pads rows."""
        shape = [a.meta["val"].size(-2), b.meta["val"].size(-1)]
        if b.meta["val"].dim() == 2:
            shape.insert(0, offsets.meta["val"].size(0))
        unit = _ALIGNMENT_BYTES // a.meta["val"].itemsize
        padded = [*shape[:-1], -(-shape[-1] // unit) * unit]
        target, args = torch.ops.aten._grouped_mm.default, (a, b, offsets)
        made = self._call(target, args, shape, _in_order(padded))
        if padded == shape:
            return made
        target = torch.ops.aten.clone.default
        return self._call(target, (made,), shape, _in_order(shape))


def _forward(graph, node):
    x, weight, offsets = node.args[:3]
    if not all(_is_aligned(operand.meta["val"]) for operand in (x, weight)):
        return
    with graph.inserting_before(node):
        made = _Rewriter(graph, node).matmul(x, weight, offsets)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _backward(graph, node):
    x, weight, offsets, gradient = node.args[:4]
    if not all(_is_aligned(v.meta["val"]) for v in (x, weight, gradient)):
        return
    for user in list(node.users):
        with graph.inserting_before(user):
            make = _Rewriter(graph, node)
            if user.args[1] == 0:
                made = make.matmul(gradient, make.transposed(weight), offsets)
            else:
                made = make.matmul(make.transposed(x), gradient, offsets)
        user.replace_all_uses_with(made)
        graph.erase_node(user)
    graph.erase_node(node)


def as_aten(program: torch.export.ExportedProgram) -> None:
    """Rewrites a program whose graph is final, in place. Calls on rows whose length is
    not a multiple of 16 bytes are unchanged."""
    graph = program.graph
    renamed = program.graph_signature.get_replace_hook()
    with program.graph_module._set_replace_hook(renamed):
        for node in list(graph.nodes):
            if _name(node) == _FORWARD:
                _forward(graph, node)
            elif _name(node) == _BACKWARD:
                _backward(graph, node)
    program.graph_module.recompile()
