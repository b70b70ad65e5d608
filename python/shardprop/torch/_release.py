"""This module names the releases of torch on which the package runs."""

import re

from .._error import Error

#: Releases on which the suites of tests/torch for `parallelize` and the propagator pass.
RELEASES = ("2.12", "2.13", "2.14")


def requirement() -> str:
    """Returns the releases in pip's notation: torch>=2.12,<2.15."""
    major, minor = RELEASES[-1].split(".")
    return f"torch>={RELEASES[0]},<{major}.{int(minor) + 1}"


def check_torch(version: str) -> None:
    """Raises Error unless `version` belongs to a supported release.

    Exported programs and private parts of DTensor change with every release. Another
    release would fail later, without a clear reason.
    """
    release = re.match(r"\d+\.\d+(?=\D|$)", version)
    if release and release[0] in RELEASES:
        return
    raise Error(
        "SP0709",
        f"shardprop.torch runs on torch {', '.join(RELEASES[:-1])} and {RELEASES[-1]}",
        "torch",
        [f"installed: {version}"],
        f"pip install '{requirement()}'; with any other release `import shardprop` "
        "plans .pt2 files and saved graphs",
    )
