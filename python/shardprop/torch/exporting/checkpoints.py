"""This module keeps the marks of torch.utils.checkpoint in exported programs.

torch.export writes a checkpointed function as a plain call. Here each operator of
such a call has the region's name in its metadata, custom["checkpoint"].
"""

import contextlib
import itertools
from collections.abc import Iterator

import torch
import torch.utils.checkpoint
from torch.fx import traceback

NAME = "checkpoint"
_regions = itertools.count()


@contextlib.contextmanager
def region() -> "Iterator[None]":
    """Operators that are traced during the block belong to one region, the outermost
    one."""
    if NAME in traceback.current_meta.get("custom", {}):
        yield
        return
    with traceback.preserve_node_meta(), traceback.annotate(
        {NAME: str(next(_regions))}
    ):
        yield


def _is_marked(node: torch.fx.Node) -> bool:
    return NAME in node.meta.get("custom", {})


@contextlib.contextmanager
def kept(program: torch.export.ExportedProgram) -> "Iterator[None]":
    """Makes a trace of the program keep its marks, if it has any."""
    with contextlib.ExitStack() as stack:
        if any(map(_is_marked, program.graph.nodes)):
            stack.enter_context(traceback.preserve_node_meta())
        yield


def _marked(
    fn, preserve_rng_state=True, context_fn=None, determinism_check="", *args, **kwargs
):
    # torch.utils.checkpoint runs its generator up to the yield before the function,
    # and from the yield on after it.
    with region():
        yield


@contextlib.contextmanager
def marked() -> "Iterator[None]":
    """Makes checkpoint() mark the operators that it runs."""
    global _regions
    own = torch.utils.checkpoint._checkpoint_without_reentrant_generator
    torch.utils.checkpoint._checkpoint_without_reentrant_generator = _marked
    _regions = itertools.count()
    try:
        yield
    finally:
        torch.utils.checkpoint._checkpoint_without_reentrant_generator = own
