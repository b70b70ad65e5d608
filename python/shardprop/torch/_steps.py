"""Step computes the bytes of each rank in one collective, by the formulas of plans."""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence

from .. import _core
from . import _layout


class Step:
    """A Step is a collective between two layouts of a tensor of a known shape.

        Step({"tp": 4}, [10], {"collective": "all_gather", "mesh_dims": ["tp"],
                               "dtype": "f32", "src": ["S(0)"], "dst": ["R"]})
            .bytes_of_rank(3)    # 3 parts of 3 elements, padding included: 36
    """

    def __init__(self, mesh: "Mapping[str, int]", shape: "Sequence[int]", step: dict):
        self._mesh = mesh
        self._text = ",".join(f"{name}={size}" for name, size in mesh.items())
        self._shape = list(shape)
        self._kind = step["collective"]
        self._dims = step["mesh_dims"]
        self._layouts = {end: ",".join(step[end]) for end in ("src", "dst")}
        self._dtype = step["dtype"]
        self._item = _layout.DTYPES[self._dtype].itemsize
        self.bytes_of_rank = functools.lru_cache(maxsize=None)(self._bytes_of_rank)

    def _region(self, end, rank):
        return _core.local_region(
            self._text, self._shape, self._dtype, self._layouts[end], rank
        )

    def _size(self, end, rank):
        return math.prod(
            sum(last - first for first, last in intervals)
            for intervals in self._region(end, rank)
        )

    def _common(self, sender, receiver):
        """Returns the elements that `sender` holds before the step and `receiver` after
        it."""
        return math.prod(
            sum(
                max(0, min(a[1], b[1]) - max(a[0], b[0]))
                for a, b in itertools.product(before, after)
            )
            for before, after in zip(
                self._region("src", sender), self._region("dst", receiver)
            )
        )

    def _group(self, rank):
        """Returns the row-major indices of the ranks in the same group."""
        choices, stride = [], math.prod(self._mesh.values())
        for name, size in self._mesh.items():
            stride //= size
            own = rank // stride % size
            places = range(size) if name in self._dims else (own,)
            choices.append([place * stride for place in places])
        return [sum(places) for places in itertools.product(*choices)]

    def _bytes_of_rank(self, rank: int) -> int:
        if self._kind in ("all_to_all", "permute"):
            kept = self._common(rank, rank)
            return (self._size("src", rank) - kept) * self._item
        group = self._group(rank)
        others = len(group) - 1
        if self._kind == "all_reduce":
            share = -(-self._size("src", rank) // len(group))
            return 2 * others * share * self._item
        end = "src" if self._kind == "all_gather" else "dst"
        padded = max(self._size(end, member) for member in group)
        return others * padded * self._item

    def padded_bytes_of_rank(self, rank: int) -> int:
        """Returns the bytes if PyTorch pads all parts of an exchange to the largest
        one."""
        if self._kind != "all_to_all":
            return self.bytes_of_rank(rank)
        group = self._group(rank)
        largest = max(self._common(a, b) for a in group for b in group)
        return max(self.bytes_of_rank(rank), (len(group) - 1) * largest * self._item)
