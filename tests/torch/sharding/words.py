"""How calls, meshes and slices are written."""

import argparse


def mesh_sizes(text):
    sizes = tuple(int(size) for size in text.split(","))
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"not a mesh: {text}")
    return sizes


def slice_of(text):
    index, count = (int(part) for part in text.split("/"))
    if not 1 <= index <= count:
        raise argparse.ArgumentTypeError(f"not a slice: {text}; write 1/4 to 4/4")
    return index, count


def in_short(call):
    """aten.sum.dim_IntList(f32[4, 6]; dim=(0,))"""
    shapes = ", ".join(f"{meta.dtype}{list(meta.shape)}" for meta in call.inputs)
    scalars = ", ".join(
        f"{name}={value}" for name, value in call.args if "Operand" not in repr(value)
    )
    return f"{call.op}({shapes}; {scalars})"


def in_words(strategy):
    """S(0),R->S(0); operands in brackets on meshes of several dims."""

    def operand(layout):
        text = ",".join(layout)
        return text if len(layout) == 1 else f"[{text}]"

    sides = (strategy["inputs"], strategy["outputs"])
    return "->".join(",".join(map(operand, side)) for side in sides)
