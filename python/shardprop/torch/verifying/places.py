"""user_place() is the source line of a call in the user's code."""

import contextlib
import os
import sys
import threading

import torch
import typing_extensions


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path)) + os.sep


_OURS = _folder(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Frames of these files are not code of the user.
_SKIPPED = (
    _folder(torch.__file__),
    _OURS,
    threading.__file__,
    contextlib.__file__,
    # PyTorch marks functions as deprecated by wrappers of this module.
    typing_extensions.__file__,
    "<",
)


# Functions of torch.distributed.pipelining that run a module on empty tensors.
_INFERENCE = (
    "_shape_inference",
    "_forward_metadata_inference",
    "_backward_metadata_inference",
)


def _short(path: str) -> str:
    """Returns the path relative to the working directory if that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:
        return path
    return relative if len(relative) < len(path) else path


def is_ours(path: str) -> bool:
    """Returns whether a file belongs to this package."""
    return os.path.abspath(path).startswith(_OURS)


def is_inferring_shapes() -> bool:
    """Returns whether a pipeline stage of PyTorch calls its module for shapes only."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in _INFERENCE and "pipelining" in code.co_filename:
            return True
        frame = frame.f_back
    return False


def user_place() -> str:
    """Returns "file:line" of the innermost frame outside PyTorch and this package.

    The place is empty if no such frame exists.
    """
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_SKIPPED):
            return f"{_short(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
