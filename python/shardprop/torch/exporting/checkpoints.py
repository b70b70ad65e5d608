"""This module keeps the marks of torch.utils.checkpoint in exported programs.

torch.export writes a checkpointed function as a plain call. Here each operator of
such a call has the region's name in its metadata, custom["checkpoint"]. If the region
has a selective policy (create_selective_checkpoint_contexts), custom[
"checkpoint_policy"] is the policy of the operator, such as "MUST_SAVE".
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator

import torch
import torch.utils.checkpoint
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
)

NAME = "checkpoint"
POLICY = "checkpoint_policy"
_regions = itertools.count()
_policies: dict[str, Callable] = {}  # by region


@contextlib.contextmanager
def region(policy: Callable | None = None) -> "Iterator[None]":
    """Operators that are traced during the block belong to one region, the outermost
    one."""
    if NAME in traceback.current_meta.get("custom", {}):
        yield
        return
    name = str(next(_regions))
    if policy is not None:
        _policies[name] = policy
    with traceback.preserve_node_meta(), traceback.annotate({NAME: name}):
        yield


def _is_marked(node: torch.fx.Node) -> bool:
    return NAME in node.meta.get("custom", {})


def _policy_of(policy, op, result, args, kwargs) -> str:
    try:
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
    except TypeError:  # PyTorch up to 2.12
        context = SelectiveCheckpointContext(is_recompute=False)
    found = policy(context, op, *args, **kwargs)
    if isinstance(found, bool):
        found = (
            CheckpointPolicy.MUST_SAVE if found else CheckpointPolicy.PREFER_RECOMPUTE
        )
    return found.name


class _Policies(TorchDispatchMode):
    """Asks the policy of a region about each operator, in the order of the trace, and
    marks the nodes that the operator becomes."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls):
        return True

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        custom = traceback.current_meta.get("custom", {})
        policy = _policies.get(custom.get(NAME))
        tracing = get_proxy_mode()
        if (
            policy is None
            or tracing is None
            or POLICY in custom  # a second trace, which copies the marks
            or op in SAC_IGNORED_OPS
            or torch._C._current_graph_task_id() != -1  # in the backward phase
        ):
            return op(*args, **kwargs)
        nodes = tracing.tracer.graph.nodes
        before = len(nodes)
        result = op(*args, **kwargs)
        name = _policy_of(policy, op, result, args, kwargs)
        for node in itertools.islice(reversed(nodes), len(nodes) - before):
            node.meta["custom"] = {**node.meta.get("custom", {}), POLICY: name}
        return result


@contextlib.contextmanager
def kept(program: torch.export.ExportedProgram) -> "Iterator[None]":
    """Makes a trace of the program keep its marks, if it has any."""
    with contextlib.ExitStack() as stack:
        if any(map(_is_marked, program.graph.nodes)):
            stack.enter_context(traceback.preserve_node_meta())
            if _policies:
                stack.enter_context(_Policies())
        yield


def _marked(
    fn, preserve_rng_state=True, context_fn=None, determinism_check="", *args, **kwargs
):
    # torch.utils.checkpoint runs its generator up to the yield before the function,
    # and from the yield on after it.
    forward = context_fn()[0] if context_fn is not None else None
    policy = getattr(forward, "policy_fn", None)
    with contextlib.ExitStack() as stack:
        stack.enter_context(region(policy))
        if forward is not None and not isinstance(forward, TorchDispatchMode):
            stack.enter_context(forward)
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
        _policies.clear()
