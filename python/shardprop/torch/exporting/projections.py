"""separate_unequal() splits the weight of a fused projection, not its result.

The result of one linear may be split into pieces of unequal sizes: 40 heads of queries,
10 of keys and 10 of values. No layout of the fused dim shards each piece by heads. The
pieces of the weight may each have a layout of their own:

    qkv = linear(x, w)            q, k, v = split(w, [5120, 1280, 1280])
    q, k, v = split(qkv, ...)     linear(x, q), linear(x, k), linear(x, v)

Both compute the same elements. Equal pieces stay fused, because a strided shard of the
fused dim has a part of each of them.
"""

import operator
import warnings

import torch

_aten = torch.ops.aten
_LINEAR = _aten.linear.default
_SPLITS = (_aten.split_with_sizes.default, _aten.split.sizes)
_EVERY = 2**63 - 1  # the end of a slice that has none


def _linears(x, weight, bias, sizes):
    weights = _aten.split_with_sizes.default(weight, sizes)
    biases = (
        [None] * len(sizes)
        if bias is None
        else _aten.split_with_sizes.default(bias, sizes)
    )
    return [_LINEAR(x, w, b) for w, b in zip(weights, biases, strict=True)]


def _argument(node, place, name, default=None):
    if len(node.args) > place:
        return node.args[place]
    return node.kwargs.get(name, default)


def _is_last(dim, rank):
    return dim in (-1, rank - 1)


def _split_sizes(node, rank):
    """Returns the sizes if the node splits the last dim; else None."""
    if node.target not in _SPLITS or not _is_last(_argument(node, 2, "dim", 0), rank):
        return None
    sizes = _argument(node, 1, "split_sizes") or node.kwargs.get("split_size")
    return list(sizes) if all(isinstance(size, int) for size in sizes) else None


def _region(node, shape):
    """Returns (start, end) if the node slices the last dim; else None."""
    if node.target is not _aten.slice.Tensor:
        return None
    if not _is_last(_argument(node, 1, "dim", 0), len(shape)):
        return None
    size = shape[-1]
    places = []
    for place, name, default in ((2, "start", 0), (3, "end", _EVERY)):
        at = _argument(node, place, name, default)
        at = default if at is None else at
        if not isinstance(at, int):
            return None
        places.append(min(max(at + size if at < 0 else at, 0), size))
    return tuple(places) if _argument(node, 4, "step", 1) == 1 else None


def _pieces(linear):
    """Returns the sizes of the pieces, and the nodes that have each piece. It returns
    None if the result has other uses."""
    shape = linear.meta["val"].shape
    users = list(linear.users)
    if len(users) == 1 and (sizes := _split_sizes(users[0], len(shape))):
        nodes = [[] for _ in sizes]
        for item in users[0].users:
            if item.target is not operator.getitem:
                return None
            nodes[item.args[1]].append(item)
        return sizes, nodes
    regions = [_region(user, shape) for user in users]
    if len(users) < 2 or None in regions:
        return None
    nodes, end = [], 0
    for start in sorted(set(regions)):
        if start[0] != end:
            return None
        end = start[1]
        nodes.append([u for u, r in zip(users, regions, strict=True) if r == start])
    if end != shape[-1]:
        return None
    return [end - start for start, end in sorted(set(regions))], nodes


def _separate(graph, linear):
    """Returns whether the pieces of the linear's result are unequal, and are separate
    linears now."""
    found = _pieces(linear)
    if found is None or len(set(found[0])) == 1 or 0 in found[0]:
        return False
    sizes, pieces = found
    split = next(iter(linear.users))
    bias = _argument(linear, 2, "bias")
    with graph.inserting_before(linear):
        separate = graph.call_function(_linears, (*linear.args[:2], bias, sizes))
        separate.meta = {k: v for k, v in linear.meta.items() if k != "val"}
        for place, nodes in enumerate(pieces):
            piece = graph.call_function(operator.getitem, (separate, place))
            for node in nodes:
                piece.meta = dict(node.meta)
                node.replace_all_uses_with(piece)
                graph.erase_node(node)
    if split.target in _SPLITS:
        graph.erase_node(split)
    graph.erase_node(linear)
    return True


def separate_unequal(program):
    """Replaces the program's linears whose results have unequal pieces, in place.

    The linears of the pieces enter the graph when it is next traced. Warns if
    nothing is replaced.
    """
    separated = 0
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in list(module.graph.nodes):
            if node.target is _LINEAR:
                separated += _separate(module.graph, node)
        module.recompile()
    if separated == 0:
        warnings.warn(
            "separate_pieces=True changes nothing: no linear's result is divided into "
            "pieces of unequal sizes by split_with_sizes or by slices of its last dim, "
            "without another use",
            stacklevel=2,
        )
