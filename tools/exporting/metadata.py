"""What of a node's metadata is worth its bytes."""

import pathlib
import re
import sys

import torch
from torch.fx.traceback import GRADIENT_ACC_SPECIAL_STACK

_TORCH_ROOT = pathlib.Path(torch.__file__).resolve().parent
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>.*)$')


def _is_user_code(path):
    return not (path.startswith("<") or path.startswith(str(_TORCH_ROOT)))


def _portable(path):
    """The path as an import sees it, or below the working directory."""
    roots = [pathlib.Path.cwd(), *map(pathlib.Path, filter(None, sys.path))]
    inside = [r for r in roots if pathlib.Path(path).is_relative_to(r)]
    if not inside:
        return path
    return str(pathlib.Path(path).relative_to(max(inside, key=lambda r: len(r.parts))))


def innermost_user_line(stack_trace):
    """Cuts a traceback to its innermost frame outside PyTorch, or None."""
    lines = stack_trace.replace(GRADIENT_ACC_SPECIAL_STACK, "").splitlines()
    for index in range(len(lines) - 1, -1, -1):
        frame = _FRAME.match(lines[index])
        if frame is None or not _is_user_code(frame["path"]):
            continue
        head = 'File "{}", line {}, in {}'.format(
            _portable(frame["path"]), frame["line"], frame["function"]
        )
        has_source = index + 1 < len(lines) and not _FRAME.match(lines[index + 1])
        source = ["    " + lines[index + 1].strip()] if has_source else []
        return "\n".join([head, *source])
    return None


def trim(program, whole_module_stack=False):
    """Drops from every node what shardprop has no use for, in place.

    Kept: the innermost user line, the innermost module (its path names those
    around it), and `custom`, where phases, forward ops and users' hints stand.
    """
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            for key in ("torch_fn", "source_fn_stack", "from_node"):
                node.meta.pop(key, None)
            trace = innermost_user_line(node.meta.pop("stack_trace", None) or "")
            if trace:
                node.meta["stack_trace"] = trace
            stack = node.meta.get("nn_module_stack")
            if stack and not whole_module_stack:
                node.meta["nn_module_stack"] = dict([list(stack.items())[-1]])
