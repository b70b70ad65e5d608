"""trim() reduces a node's metadata to the parts that shardprop reads."""

import pathlib
import re
import sys

import torch
from torch.fx.traceback import GRADIENT_ACC_SPECIAL_STACK

_TORCH_ROOT = pathlib.Path(torch.__file__).resolve().parent
_FRAME = re.compile(
    r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>.*)$'
)


def _is_user_code(path):
    return not (path.startswith("<") or path.startswith(str(_TORCH_ROOT)))


def _portable(path):
    """Returns the path relative to an import root or to the working directory."""
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


def _nodes(program):
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def make_portable(program):
    """Removes metadata that names this machine or this run, in place.

    Stack traces keep their innermost user line. `from_node` is removed, because it
    holds addresses in memory, and so are marks of dynamo's own state.
    """
    for node in _nodes(program):
        node.meta.pop("from_node", None)
        custom = node.meta.get("custom")
        if custom:
            node.meta["custom"] = {
                key: value
                for key, value in custom.items()
                if not str(key).startswith("_torchdynamo")
            }
        trace = innermost_user_line(node.meta.pop("stack_trace", None) or "")
        if trace:
            node.meta["stack_trace"] = trace


def trim(program):
    """Removes from every node the metadata that shardprop does not read, in place.

    It keeps the innermost user line, the innermost module (its path names the outer
    ones), and `custom`, which has phases, forward ops and users' hints.
    """
    make_portable(program)
    for node in _nodes(program):
        for key in ("torch_fn", "source_fn_stack"):
            node.meta.pop(key, None)
        stack = node.meta.get("nn_module_stack")
        if stack:
            node.meta["nn_module_stack"] = dict([list(stack.items())[-1]])
