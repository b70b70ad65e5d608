#!/usr/bin/env python3
"""Checks the includes between the folders of a module.

    scripts/include_graph.py            check; exit status 1 at a finding
    scripts/include_graph.py --print    also print which folder includes which

Three rules hold for `plan` and `solver`:
  1. A folder includes only itself and folders before it in ORDER.
  2. No two sources include each other, directly or through others. A header and
     its source count as one.
  3. A folder holds at most 30 files.
"""

import argparse
import collections
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"
ORDER = {
    "plan": ["problem", "problem/choices", "problem/constraints", "problem/build",
             "evaluate", "network", "search/parts", "search", "explain", "saved", ""],
    "solver": ["model", "presolve", "bound", "eliminate", "conflict", "search", ""],
}
# Sources of the module's own folder that every folder may include.
FIRST = {"tuning"}
MOST_FILES = 30
INCLUDE = re.compile(r'^#include "([^"]+)\.h"', re.MULTILINE)


def includes_of(module):
    """Returns, by source without its suffix, what it includes of its module."""
    out = collections.defaultdict(set)
    for path in sorted((SRC / module).rglob("*")):
        if path.suffix in (".h", ".cc"):
            name = str(path.relative_to(SRC / module).with_suffix(""))
            found = INCLUDE.findall(path.read_text())
            out[name] |= {f[len(module) + 1:] for f in found
                          if f.startswith(module + "/")} - {name}
    return out


def circles(includes):
    """Yields each circle once, as a list of sources."""
    finished, path = set(), []

    def visit(name):
        if name in path:
            yield path[path.index(name):] + [name]
            return
        if name in finished:
            return
        path.append(name)
        for other in sorted(includes.get(name, ())):
            yield from visit(other)
        path.pop()
        finished.add(name)

    for name in sorted(includes):
        yield from visit(name)


def folder(name):
    return name.rpartition("/")[0]


def position(name, order):
    """Returns the position of a source; FIRST comes before all folders."""
    return -1 if name in FIRST else order.index(folder(name))


def check(module, order):
    findings = []
    includes = includes_of(module)
    for name, others in sorted(includes.items()):
        for other in sorted(others):
            if folder(name) not in order or folder(other) not in order:
                findings.append(f"{module}/{name} includes {module}/{other}: a folder "
                                "that ORDER does not name")
            elif position(other, order) > position(name, order):
                findings.append(f"{module}/{name} includes {module}/{other}, a file of "
                                "a later folder")
    for circle in circles(includes):
        findings.append(f"circle in {module}: " + " -> ".join(circle))
    for place in [SRC / module / f for f in order]:
        files = [f for f in place.iterdir() if f.is_file()]
        if len(files) > MOST_FILES:
            findings.append(f"{place.relative_to(SRC)} has {len(files)} files, more "
                            f"than {MOST_FILES}")
    return findings


def show(module, order):
    used = collections.defaultdict(set)
    for name, others in includes_of(module).items():
        used[folder(name)] |= {folder(o) for o in others} - {folder(name)}
    for name in order:
        print(f"{module}/{name}".rstrip("/"), "<-",
              ", ".join(f or module for f in order if f in used[name]) or "nothing")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", dest="show")
    options = parser.parse_args()
    findings = []
    for module, order in ORDER.items():
        if options.show:
            show(module, order)
        findings += check(module, order)
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
