"""What can go wrong around a planned module, said with what to do about it."""

import contextlib
import re

import torch

from .._error import Error

_TORCH = "2.13"

# What gloo, NCCL and c10d say when another rank is gone or does not come.
_LOST = re.compile(
    r"gloo|nccl|connection (closed|reset|refused)|broken pipe|timed? ?out"
    r"|remote (process|peer)|watchdog",
    re.IGNORECASE,
)


def check_torch(version: str = torch.__version__) -> None:
    """Programs are written for one release: others change what they call."""
    if re.match(rf"{re.escape(_TORCH)}(\.|$)", version):
        return
    raise Error(
        "SP0709",
        f"programs run on torch {_TORCH}",
        "torch",
        [f"installed: {version}"],
        f"pip install 'torch=={_TORCH}.*'; planning works without torch",
    )


@contextlib.contextmanager
def explained():
    """Turns what a collective raises into an Error."""
    try:
        yield
    except RuntimeError as failure:
        text = str(failure)
        if not _LOST.search(text):
            raise
        late = re.search(r"timed? ?out", text, re.IGNORECASE)
        raise Error(
            "SP0911" if late else "SP0912",
            "a rank did not come to a collective in time"
            if late
            else "another rank failed or left in the middle of the program",
            f"rank {torch.distributed.get_rank()}",
            [text.splitlines()[0][:300]],
            "the first rank that reports an error of its own says why; begin all "
            "ranks again from a checkpoint, the process group cannot be used on",
        ) from failure
