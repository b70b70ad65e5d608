#!/usr/bin/env python3
"""Rewrites a .pt2 in the flat layout that torch.export.save wrote up to 2.7.

  make_legacy_pt2.py IN.pt2 OUT.pt2

The program is unchanged. Weights, constants and example inputs become empty entries,
since shardprop never reads them.
"""

import argparse
import json
import zipfile

_EPOCH = (1980, 1, 1, 0, 0, 0)
_PICKLES = (
    "serialized_state_dict.pt",
    "serialized_constants.pt",
    "serialized_example_inputs.pt",
)


def read_program(path):
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith("models/model.json")]
        if len(names) != 1:
            raise SystemExit(f"{path}: expected one models/model.json")
        return archive.read(names[0])


def write_legacy(program, path):
    version = json.loads(program)["schema_version"]
    entries = {"serialized_exported_program.json": program}
    entries.update((name, b"") for name in _PICKLES)
    entries["version"] = f"{version['major']}.{version['minor']}".encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="IN.pt2")
    parser.add_argument("target", metavar="OUT.pt2")
    options = parser.parse_args()
    write_legacy(read_program(options.source), options.target)


if __name__ == "__main__":
    main()
