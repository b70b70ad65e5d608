"""Calls of eager DTensor, sampled with a seed: tensors of uneven sizes in any
layout of a 2x2 mesh, operators, views, and writes through views.

Values are small whole numbers in double precision, so that sums in any order are
exact and a wrong element shows.
"""

import contextlib
import dataclasses
import random
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch.distributed._local_tensor import LocalTensor, enabled_local_tensor_mode
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

R = Replicate()


@dataclasses.dataclass
class Call:
    """`run` takes the tensors, returns its result, and may write the tensors."""

    name: str
    tensors: "list[torch.Tensor]"
    layouts: "list[tuple]"
    run: Callable

    def __str__(self):
        operands = ", ".join(
            f"{list(t.shape)} {','.join(map(_short, layout))}"
            for t, layout in zip(self.tensors, self.layouts)
        )
        return f"{self.name} of {operands}"


def _short(placement) -> str:
    if placement.is_replicate():
        return "R"
    if placement.is_partial():
        return f"P({placement.reduce_op})"
    return f"S({placement.dim})"


def plain_tensors():
    """A context in which operators make tensors of one process. Under
    LocalTensorMode they make one tensor a rank, random ones of other values."""
    mode = enabled_local_tensor_mode()
    return contextlib.nullcontext() if mode is None else mode.disable()


def distribute(tensor: torch.Tensor, mesh, layout, seed: int = 0) -> DTensor:
    """A DTensor in any layout, partials with terms that differ included."""
    with plain_tensors():
        if isinstance(tensor, LocalTensor):
            tensor = tensor.reconcile()
        parts = {(): tensor}
        for mesh_dim, (size, placement) in enumerate(zip(mesh.shape, layout)):
            parts = {
                (*at, i): part
                for at, whole in parts.items()
                for i, part in enumerate(
                    _split(whole, size, placement, 1 + mesh_dim + seed)
                )
            }
        parts = {
            at: part.clone(memory_format=torch.contiguous_format)
            for at, part in parts.items()
        }
    if enabled_local_tensor_mode() is None:
        local = parts[tuple(mesh.get_coordinate())]
    else:
        local = LocalTensor(dict(zip(mesh.mesh.flatten().tolist(), parts.values())))
    return DTensor.from_local(
        local,
        mesh,
        layout,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def _split(whole, size, placement, shift):
    if placement.is_replicate():
        return [whole] * size
    if placement.is_partial():
        if placement.reduce_op == "sum":
            term = torch.full_like(whole, shift)
            return [whole - shift * (size - 1), *[term] * (size - 1)]
        least = whole - shift
        # Another part decides at each element.
        turn = torch.arange(whole.numel()).reshape(whole.shape) % size
        return [torch.where(turn == i, whole, least) for i in range(size)]
    # A tensor that another dim leaves empty still has parts of their own sizes.
    has_parts = whole.size(placement.dim) > 0
    parts = list(torch.chunk(whole, size, placement.dim)) if has_parts else []
    empty = whole.narrow(placement.dim, 0, 0)
    return parts + [empty] * (size - len(parts))


class Sampler:
    """The calls of one seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)

    def call(self) -> Call:
        family = self.random.choices(
            list(FAMILIES), [weight for _, weight in FAMILIES.values()]
        )[0]
        draw, _ = FAMILIES[family]
        name, tensors, run = draw(self)
        layouts = [self.layout(tensor) for tensor in tensors]
        return Call(f"{family}: {name}", tensors, layouts, run)

    def size(self) -> int:
        return self.random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 12))

    def shape(self, rank=None) -> "tuple[int, ...]":
        rank = rank or self.random.choice((1, 2, 2, 3, 3, 4))
        return tuple(self.size() for _ in range(rank))

    def tensor(self, *shape, low=-9, high=9) -> torch.Tensor:
        shape = shape or self.shape()
        drawn = torch.randint(low, high + 1, shape, generator=self.generator)
        return drawn.to(torch.float64)

    def layout(self, tensor) -> tuple:
        return tuple(self._placement(tensor) for _ in range(2))

    def _placement(self, tensor):
        kinds = ["R", "S", "S", "S"] if tensor.ndim else ["R"]
        if tensor.is_floating_point():
            kinds.append("P")
        kind = self.random.choice(kinds)
        if kind == "S":
            return Shard(self.random.randrange(tensor.ndim))
        return Partial("sum") if kind == "P" else R

    def dim(self, tensor) -> int:
        return self.random.randrange(tensor.ndim)

    def pick(self, *choices) -> Any:
        return self.random.choice(choices)

    # --- views ---

    def view(self, shape) -> "tuple[str, Callable, tuple]":
        """A view of a tensor of that shape: in words, as a function, its shape."""
        drawn = self.random.choice(VIEWS)(self, tuple(shape))
        if drawn is None:
            return self.view(shape)
        name, take = drawn
        return name, take, tuple(take(torch.empty(shape)).shape)

    def views(self, shape) -> "tuple[str, Callable, tuple]":
        """One view, or a view of a view."""
        name, take, shape = self.view(shape)
        if not shape or self.random.random() < 0.6:
            return name, take, shape
        outer, take_again, shape = self.view(shape)
        return f"{name}.{outer}", lambda x: take_again(take(x)), shape


# Each returns a name and a function, or None if the shape has no such view.
def _slice(draw, shape):
    dim = draw.random.randrange(len(shape))
    begin = draw.random.randrange(shape[dim])
    end = draw.random.randint(begin + 1, shape[dim])
    step = draw.pick(1, 1, 1, 2)
    at = (slice(None),) * dim + (slice(begin, end, step),)
    return f"slice({dim},{begin},{end},{step})", lambda x: x[at]


def _select(draw, shape):
    dim = draw.random.randrange(len(shape))
    index = draw.random.randrange(shape[dim])
    return f"select({dim},{index})", lambda x: x.select(dim, index)


def _flat(draw, shape):
    return "view(-1)", lambda x: x.view(-1)


def _flatten_two(draw, shape):
    if len(shape) < 2:
        return None
    dim = draw.random.randrange(len(shape) - 1)
    new = shape[:dim] + (shape[dim] * shape[dim + 1],) + shape[dim + 2 :]
    return f"view{list(new)}", lambda x: x.view(new)


def _unflatten(draw, shape):
    dim = draw.random.randrange(len(shape))
    ways = [n for n in range(2, shape[dim]) if shape[dim] % n == 0]
    if not ways:
        return None
    first = draw.random.choice(ways)
    new = shape[:dim] + (first, shape[dim] // first) + shape[dim + 1 :]
    return f"view{list(new)}", lambda x: x.view(new)


def _transpose(draw, shape):
    if len(shape) < 2:
        return None
    a, b = draw.random.sample(range(len(shape)), 2)
    return f"transpose({a},{b})", lambda x: x.transpose(a, b)


def _unsqueeze(draw, shape):
    dim = draw.random.randrange(len(shape) + 1)
    return f"unsqueeze({dim})", lambda x: x.unsqueeze(dim)


def _squeeze(draw, shape):
    return ("squeeze()", lambda x: x.squeeze()) if 1 in shape else None


def _unbind(draw, shape):
    dim = draw.random.randrange(len(shape))
    index = draw.random.randrange(shape[dim])
    return f"unbind({dim})[{index}]", lambda x: x.unbind(dim)[index]


def _split_view(draw, shape):
    dim = draw.random.randrange(len(shape))
    size = draw.random.randint(1, shape[dim])
    index = draw.random.randrange(-(-shape[dim] // size))
    return f"split({size},{dim})[{index}]", lambda x: x.split(size, dim)[index]


def _chunk(draw, shape):
    dim = draw.random.randrange(len(shape))
    return f"chunk(2,{dim})[0]", lambda x: x.chunk(2, dim)[0]


def _diagonal(draw, shape):
    if len(shape) < 2:
        return None
    return "diagonal()", lambda x: x.diagonal()


def _narrow(draw, shape):
    dim = draw.random.randrange(len(shape))
    length = draw.random.randint(1, shape[dim])
    begin = draw.random.randint(0, shape[dim] - length)
    return f"narrow({dim},{begin},{length})", lambda x: x.narrow(dim, begin, length)


def _detach(draw, shape):
    return "detach()", lambda x: x.detach()


VIEWS = (
    *(_slice, _slice, _select, _flat, _flatten_two, _unflatten, _transpose),
    *(_unsqueeze, _squeeze, _unbind, _split_view, _chunk, _diagonal, _narrow),
    _detach,
)


def _of_view(draw):
    x = draw.tensor()
    name, take, _ = draw.views(x.shape)
    return name, [x], take


def _of_view_then(draw):
    """An operator of a view."""
    x = draw.tensor()
    name, take, shape = draw.views(x.shape)
    then = draw.pick(*_UNARY)
    return f"{then}({name})", [x], lambda x: _UNARY[then](take(x))


_UNARY = {
    "neg": torch.neg,
    "abs": torch.abs,
    "relu": torch.relu,
    "square": torch.square,
    "sum": torch.sum,
    "amax": torch.amax,
    "times2": lambda x: x * 2,
    "plus1": lambda x: x + 1,
    "clone": torch.clone,
    "double": lambda x: x + x,
    "flat": lambda x: x.reshape(-1),
}


def _write_through_view(draw):
    x = draw.tensor()
    name, take, shape = draw.views(x.shape)
    write = draw.pick("add_", "mul_", "fill_", "zero_", "copy_", "set", "abs_", "add_t")
    tensors = [x]
    if write in ("copy_", "add_t"):
        tensors.append(draw.tensor(*shape) if shape else draw.tensor(1).squeeze(0))

    def run(x, *others):
        view = take(x)
        if write == "add_":
            view.add_(5)
        elif write == "mul_":
            view.mul_(3)
        elif write == "fill_":
            view.fill_(7.0)
        elif write == "zero_":
            view.zero_()
        elif write == "abs_":
            view.abs_()
        elif write == "set":
            view[...] = 4.0
        elif write == "copy_":
            view.copy_(others[0])
        else:
            view.add_(others[0])
        return x

    return f"{name}.{write}", tensors, run


def _assign(draw):
    x = draw.tensor()
    dim = draw.dim(x)
    begin = draw.random.randrange(x.shape[dim])
    end = draw.random.randint(begin + 1, x.shape[dim])
    at = (slice(None),) * dim + (slice(begin, end),)

    def run(x):
        x[at] = 3.0
        return x

    return f"x[{at}] = 3", [x], run


def _in_place(draw):
    x = draw.tensor()
    name, write = draw.pick(
        ("add_", lambda x: x.add_(2)),
        ("mul_", lambda x: x.mul_(2)),
        ("abs_", lambda x: x.abs_()),
        ("clamp_", lambda x: x.clamp_(-2, 3)),
        ("zero_", lambda x: x.zero_()),
        ("fill_", lambda x: x.fill_(2.0)),
        ("relu_", lambda x: x.relu_()),
        ("sub_", lambda x: x.sub_(x)),
    )
    return name, [x], write


def _pointwise(draw):
    shape = draw.shape()
    other = tuple(n if draw.random.random() < 0.8 else 1 for n in shape)
    other = other[draw.random.choice((0, 0, 1)) :] or (1,)
    name, op = draw.pick(
        ("add", torch.add),
        ("sub", torch.sub),
        ("mul", torch.mul),
        ("maximum", torch.maximum),
        ("where", lambda a, b: torch.where(a > b, a, b)),
        ("eq", torch.eq),
        ("lerp", lambda a, b: torch.lerp(a, b, 0.5)),
        ("add_", lambda a, b: a.add_(b)),
        ("mul_", lambda a, b: a.mul_(b)),
        ("copy_", lambda a, b: a.copy_(b)),
    )
    return name, [draw.tensor(*shape), draw.tensor(*other)], op


def _unary(draw):
    name = draw.pick(*_UNARY)
    return name, [draw.tensor()], _UNARY[name]


def _reduction(draw):
    x = draw.tensor()
    dim = draw.dim(x)
    keep = draw.pick(True, False)
    name, op = draw.pick(
        ("sum", lambda x: x.sum(dim, keep)),
        ("mean", lambda x: x.mean(dim, keep)),
        ("amax", lambda x: x.amax(dim, keep)),
        ("argmax", lambda x: x.abs().argmax(dim)),
        ("max", lambda x: x.max(dim, keep)[0]),
        ("prod", lambda x: (x.sign() + 3).prod(dim, keep)),
        ("all", lambda x: (x > -5).all(dim, keep)),
        ("any", lambda x: (x > 5).any(dim, keep)),
        ("cumsum", lambda x: x.cumsum(dim)),
        ("var", lambda x: x.var(dim, correction=0, keepdim=keep)),
        ("norm", lambda x: torch.linalg.vector_norm(x, 2, dim)),
        ("logsumexp", lambda x: x.logsumexp(dim, keep)),
        ("softmax", lambda x: x.softmax(dim)),
    )
    return f"{name}({dim})", [x], op


def _number(draw):
    """A Python number: every rank must see the whole tensor's."""
    name, op = draw.pick(
        ("sum().item()", lambda x: x.sum().item()),
        ("mean().item()", lambda x: x.mean().item()),
        ("max().item()", lambda x: x.max().item()),
        ("float(norm)", lambda x: float(torch.linalg.vector_norm(x))),
        ("bool(all)", lambda x: bool((x > -9).all())),
        ("int(argmax)", lambda x: int(x.square().sum().to(torch.int64))),
        ("var().item()", lambda x: x.var(correction=0).item()),
        ("x[0].item()", lambda x: x.reshape(-1)[0].item()),
        ("allclose", lambda x: torch.allclose(x, x.clone())),
        ("is_same_size", lambda x: x.is_same_size(x)),
    )
    return name, [draw.tensor()], op


def _matmul(draw):
    m, k, n, b = (draw.size() for _ in range(4))
    name, shapes, op = draw.pick(
        ("mm", [(m, k), (k, n)], torch.mm),
        ("bmm", [(b, m, k), (b, k, n)], torch.bmm),
        ("linear", [(b, m, k), (n, k), (n,)], F.linear),
        ("addmm", [(n,), (m, k), (k, n)], torch.addmm),
        ("mv", [(m, k), (k,)], torch.mv),
        ("einsum", [(b, m, k), (k, n)], lambda x, y: torch.einsum("bmk,kn->bnm", x, y)),
        ("matmul", [(b, m, k), (k, n)], torch.matmul),
    )
    return name, [draw.tensor(*shape) for shape in shapes], op


def _shape(draw):
    x = draw.tensor()
    dim = draw.dim(x)
    name, op = draw.pick(
        ("reshape", lambda x: x.reshape(-1)),
        ("cat", lambda x: torch.cat([x, x * 2], dim)),
        ("stack", lambda x: torch.stack([x, x + 1], dim)),
        ("repeat", lambda x: x.repeat([2] * x.ndim)),
        ("flip", lambda x: x.flip(dim)),
        ("roll", lambda x: x.roll(1, dim)),
        ("expand", lambda x: x.unsqueeze(dim).expand(*x.shape[:dim], 3, *x.shape[dim:])),
        ("pad", lambda x: F.pad(x, (1, 2))),
        ("tril", lambda x: x.tril() if x.ndim > 1 else x),
        ("permute", lambda x: x.permute(*reversed(range(x.ndim)))),
        ("to_int", lambda x: x.to(torch.int64)),
        ("sort", lambda x: x.sort(dim)[0]),
        ("topk", lambda x: x.topk(1, dim)[0]),
    )
    return f"{name}({dim})", [x], op


def _indexing(draw):
    x = draw.tensor()
    dim = draw.dim(x)
    index = torch.randint(0, x.shape[dim], (draw.size(),), generator=draw.generator)
    wide = torch.randint(0, x.shape[dim], x.shape, generator=draw.generator)
    name, given, op = draw.pick(
        ("index_select", index, lambda x, i: x.index_select(dim, i)),
        ("gather", wide, lambda x, i: x.gather(dim, i)),
        ("index", index, lambda x, i: x[(slice(None),) * dim + (i,)]),
        ("index_add", index, lambda x, i: _index_add(x, dim, i)),
        ("masked_fill", wide, lambda x, i: x.masked_fill(i > 1, 2.0)),
        ("index_fill_", index, lambda x, i: x.index_fill_(dim, i, 6.0)),
    )
    return f"{name}({dim})", [x, given], op


def _index_add(x, dim, index):
    return x.index_add(dim, index, x.index_select(dim, index) * 2)


def _network(draw):
    b, t, d, n = (draw.size() for _ in range(4))
    x = draw.tensor(b, t, d)
    name, more, op = draw.pick(
        ("layer_norm", [(d,), (d,)], lambda x, w, c: F.layer_norm(x, (d,), w, c)),
        ("rms_norm", [(d,)], lambda x, w: F.rms_norm(x, (d,), w)),
        ("gelu", [], F.gelu),
        ("silu", [], F.silu),
        ("mse_loss", [(b, t, d)], F.mse_loss),
        ("log_softmax", [], lambda x: F.log_softmax(x, -1)),
        ("glu", [], lambda x: F.glu(torch.cat([x, x], -1), -1)),
        ("split heads", [], lambda x: x.view(b, t, 1, d).transpose(1, 2)),
    )
    return name, [x, *(draw.tensor(*shape) for shape in more)], op


FAMILIES = {
    "view": (_of_view, 12),
    "operator of a view": (_of_view_then, 12),
    "write through a view": (_write_through_view, 22),
    "assignment": (_assign, 5),
    "in place": (_in_place, 6),
    "pointwise": (_pointwise, 10),
    "unary": (_unary, 4),
    "reduction": (_reduction, 10),
    "number": (_number, 10),
    "matmul": (_matmul, 6),
    "shape": (_shape, 8),
    "index": (_indexing, 6),
    "network": (_network, 6),
}
