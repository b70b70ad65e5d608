"""Writes the code samples of the public headers into one source to compile.

  write_samples.py ROOT OUTPUT

A sample is a run of comment lines that are indented by three spaces, if one of
them ends in a semicolon. A list, which begins with `*`, is not a sample. Each
sample becomes a function in a namespace that is named after its header
(`mesh/topology.h` gives mesh_topology_h). names.h declares in that namespace
the names that the sample uses. (Kernels, reference and solver have namespaces
of their own.)
"""

import pathlib
import re
import sys

LINE = re.compile(r"\s*//   (.*)$")
OWN_NAMESPACES = ("kernels", "reference", "solver")
STATEMENT = re.compile(r";\s*(//.*)?$")


def stretches(lines):
    """Yields (number of its first line, its lines) of each indented run."""
    found = []
    for number, line in enumerate(lines, 1):
        match = LINE.match(line)
        if not match:
            found.append(None)
        elif found and found[-1]:
            found[-1][1].append(match[1])
        else:
            found.append((number, [match[1]]))
    return [one for one in found if one]


def is_code(lines):
    return not lines[0].startswith("*") and any(map(STATEMENT.search, lines))


def main():
    root, output = map(pathlib.Path, sys.argv[1:])
    text = ['#include "headers/names.h"\n\n']
    for folder in ("include/shardprop", "kernels/include/shardprop"):
        for header in sorted((root / folder).rglob("*.h")):
            name = header.relative_to(root / folder).as_posix()
            scope = re.sub(r"\W", "_", name)
            for number, lines in stretches(header.read_text().splitlines()):
                if not is_code(lines):
                    continue
                module = "kernels" if folder.startswith("kernels") else (
                    name.split("/")[0])
                inner = module if module in OWN_NAMESPACES else "samples"
                text.append(
                    f"namespace shardprop::{inner} {{\n"
                    f"namespace {scope} {{\n"
                    f"[[maybe_unused]] Result<void> sample_{number}() {{\n"
                    f'#line {number} "{header}"\n'
                    + "\n".join(lines)
                    + f"\nreturn {{}};\n}}\n}}  // namespace {scope}\n"
                    f"}}  // namespace shardprop::{inner}\n\n")
    output.write_text("".join(text))


if __name__ == "__main__":
    main()
