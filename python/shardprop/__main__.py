"""The command line: `shardprop`, or `python -m shardprop`."""

import sys

from . import _core


def main() -> int:
    return _core.run(["shardprop", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
