"""to_json() turns an ExportedProgram into the bytes that the planner reads."""

import torch

from .exporting import write


def _device_of(exported: torch.export.ExportedProgram) -> str:
    """Returns the device of its attention kernels, or the CPU if there are none."""
    for node in exported.graph.nodes:
        name = str(node.target)
        if "_flash_attention" in name or "_efficient_attention" in name:
            return "cpu" if "for_cpu" in name else "cuda"
    return "cpu"


def to_json(exported: torch.export.ExportedProgram) -> bytes:
    """Returns the program's JSON without weights."""
    return write.to_json(exported, _device_of(exported))
