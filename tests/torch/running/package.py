"""Makes the built Python package importable: $SHARDPROP_PACKAGE is its folder.
Imported before `shardprop`; without a package the test says so and ends."""

import os
import sys

PACKAGE = os.environ.get("SHARDPROP_PACKAGE")
if PACKAGE is None:
    print("SKIPPED: SHARDPROP_PACKAGE names no built package")
    sys.exit(0)
sys.path.insert(0, PACKAGE)
