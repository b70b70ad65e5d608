"""Samples the parts of one call's arguments: sizes, shapes, dtypes, values.

Everything follows from one seed. Values are small multiples of 1/4, so that
sums, averages and casts are exact in every dtype; integers of one byte are
often near their limits.

    d = Drawer(op, random.Random(0), dtypes="mixed", relation="broadcast")
    d.tensor()                  # int8[7, 1, 2]: strides and values drawn as well
    d.tensor((3, 4), torch.bool)
"""

import math

import torch

from ..capture import TORCH_DTYPES

SIZES = {0: 3, 1: 10, 2: 13, 3: 13, 4: 16, 5: 8, 6: 13, 7: 13, 8: 7, 11: 4}
FLOATS = {"f32": 9, "f64": 8, "bf16": 5}
INTEGERS = {"i64": 7, "i32": 4, "u8": 6, "i8": 3}
ANY = FLOATS | INTEGERS | {"bool": 5}
MOST_ELEMENTS = 500

# How the shapes of a call's tensors relate, where its family does not say.
RELATIONS = ("same", "broadcast", "few sizes")
DTYPES = ("one", "mixed", "one float")

_LIMITED = (torch.uint8, torch.int8, torch.int32)


def broadcasts(rng, shape, *, fewer_dims=True):
    """Returns a shape that broadcasts to `shape`."""
    drop = rng.randint(0, len(shape)) if fewer_dims and rng.random() < 0.4 else 0
    return tuple(1 if rng.random() < 0.2 else size for size in shape[drop:])


def contiguous_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


class Drawer:
    def __init__(self, op, rng, *, dtypes="one", relation="same"):
        self.op = op
        self.base = op.split(".")[1]
        self.rng = rng
        self.relation = relation
        self.mixed = dtypes == "mixed"
        self.floats_only = dtypes == "one float"
        self.generator = torch.Generator().manual_seed(rng.randrange(2**31))
        self.main_dtype = self._dtype()
        self.few_sizes = [self.size() for _ in range(3)]
        self.main_shape = self.shape()
        self.near_limits = rng.random() < 0.4
        self.given = {}  # arguments drawn so far, by name

    def chance(self, probability):
        return self.rng.random() < probability

    def _pick(self, weights):
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def size(self, least=0, most=11):
        return self._pick({s: w for s, w in SIZES.items() if least <= s <= most})

    def shape(self, rank=None, least=0):
        """Returns a shape with at most MOST_ELEMENTS elements."""
        if rank is None:
            rank = self._pick({0: 4, 1: 25, 2: 40, 3: 25, 4: 6})
        sizes = []
        for _ in range(rank):
            room = MOST_ELEMENTS // max(1, math.prod(sizes))
            sizes.append(self.size(least, max(room, least)))
        return tuple(sizes)

    def related_shape(self, *, widest=False):
        """Returns the shape of the call's next tensor. If `widest` is set, the
        others broadcast to it."""
        if self.relation == "same" or (self.relation == "broadcast" and widest):
            return self.main_shape
        if self.relation == "broadcast":
            return broadcasts(self.rng, self.main_shape)
        return tuple(self.rng.choices(self.few_sizes, k=self.rng.randint(0, 3)))

    def _dtype(self):
        return TORCH_DTYPES[self._pick(FLOATS if self.floats_only else ANY)]

    def dtype(self):
        """Returns the dtype of the call's next tensor."""
        return self._dtype() if self.mixed and self.chance(0.6) else self.main_dtype

    def any_dtype(self):
        return TORCH_DTYPES[self._pick(ANY)]

    def integers(self, shape, low, high):
        """In [low, high)."""
        if high <= low:
            return torch.zeros(shape, dtype=torch.int64)
        return torch.randint(low, high, shape, generator=self.generator)

    def values(self, shape, dtype):
        if dtype == torch.bool:
            return self.integers(shape, 0, 2) == 1
        if dtype.is_complex:
            part = torch.float64 if dtype == torch.complex128 else torch.float32
            return torch.complex(self.values(shape, part), self.values(shape, part))
        if dtype.is_floating_point:
            drawn = self.integers(shape, -12, 13) / 4
            return torch.where(
                self.integers(shape, 0, 3) == 0, drawn.round(), drawn
            ).to(dtype)
        low = 0 if dtype == torch.uint8 else -5
        drawn = self.integers(shape, low, 6)
        if self.near_limits and dtype in _LIMITED:
            limits = torch.iinfo(dtype)
            at_limit = self.integers(shape, limits.max - 4, limits.max + 1)
            drawn = torch.where(self.integers(shape, 0, 3) == 0, at_limit, drawn)
            if low:
                at_limit = self.integers(shape, limits.min, limits.min + 5)
                drawn = torch.where(self.integers(shape, 0, 4) == 0, at_limit, drawn)
        return drawn.to(dtype)

    def distinct(self, shape, dtype):
        """Returns values that are all different, if the dtype has enough
        values."""
        count = math.prod(shape)
        order = torch.randperm(count, generator=self.generator).view(shape)
        if dtype == torch.bool:
            return order % 2 == 1
        return (order - (0 if dtype == torch.uint8 else count // 2)).to(dtype)

    def laid_out(self, value):
        """The same values, sometimes with strides in another order."""
        if value.dim() < 2 or self.chance(0.85):
            return value.contiguous()
        order = self.rng.sample(range(value.dim()), value.dim())
        inverse = [order.index(d) for d in range(value.dim())]
        return value.permute(order).contiguous().permute(inverse)

    def tensor(self, shape=None, dtype=None, *, distinct=False):
        shape = self.related_shape() if shape is None else tuple(shape)
        dtype = self.dtype() if dtype is None else dtype
        draw = self.distinct if distinct else self.values
        return self.laid_out(draw(shape, dtype))

    def index(self, shape, bound, *, negative=True):
        """Indices below `bound`, some repeated, some counted from the end."""
        low = -bound if negative and self.chance(0.5) else 0
        dtype = torch.int32 if self.chance(0.1) else torch.int64
        return self.integers(shape, low, bound).to(dtype)

    def dim(self, rank):
        rank = max(rank, 1)
        return self.rng.randrange(-rank, rank)

    def dims(self, rank, count=None):
        """Distinct dims, some counted from the end."""
        count = self.rng.randint(0, rank) if count is None else count
        chosen = self.rng.sample(range(rank), count)
        return [d - rank if self.chance(0.3) else d for d in chosen]

    def number(self):
        """Returns a scalar: int, float or bool."""
        kind = self.rng.random()
        if kind < 0.45:
            return self.rng.randint(-3, 4)
        if kind < 0.92:
            return self.rng.choice((-2.0, -1.5, -0.25, 0.0, 0.5, 1.0, 2.0, 2.5, 3.75))
        return self.chance(0.5)
