"""Factor shardings of every order and of some strides."""

import functools
import itertools

_SPLITS = (1, 2, 3)  # pieces of a strided shard


@functools.cache
def every_sharding(mesh):
    """Returns the shardings of a factor over some dims of the mesh: every order,
    every combination of split factors.

    >>> every_sharding((2,))    # [["S(0)"], ["SS(0,2)"], ["SS(0,3)"]]
    """
    found = []
    for count in range(1, len(mesh) + 1):
        for order in itertools.permutations(range(len(mesh)), count):
            for splits in itertools.product(_SPLITS, repeat=count):
                entries = ["R"] * len(mesh)
                for place, (mesh_dim, split) in enumerate(
                    zip(order, splits, strict=True)
                ):
                    cut = "S(0)" if split == 1 else f"SS(0,{split})"
                    entries[mesh_dim] = f"{cut}@{place}"
                found.append(entries)
    return found


def is_unusual(strategy):
    """Returns whether an operand has strided shards or another order than the
    mesh."""
    layouts = [*strategy["inputs"], *strategy["outputs"]]
    return any(
        "@" in entry or entry.startswith("SS") for layout in layouts for entry in layout
    )
