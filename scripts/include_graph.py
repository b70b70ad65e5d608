#!/usr/bin/env python3
"""Checks the includes between the folders of a module, the walk of `explain`, and
the lengths of files.

    scripts/include_graph.py            check; exit status 1 at a finding
    scripts/include_graph.py --print    also print which folder includes which

Three rules hold for `plan` and `solver`:
  1. A folder includes only itself and folders before it in ORDER.
  2. No two sources include each other, directly or through others. A header and
     its source count as one.
  3. A folder holds at most 30 files.
A source or header of the modules up to `plan` has at most 400 lines. A folder of `ops`
and `reference` holds at most 30 files too.
The walk of `explain` in docs/architecture.md has at most 20 files. Each one includes
the header of every file that is drawn below it.
"""

import argparse
import collections
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"
ORDER = {
    "plan": ["problem", "problem/choices", "problem/constraints", "problem/build",
             "evaluate", "saved/read", "network", "search/parts", "search", "explain",
             "saved", ""],
    "solver": ["model", "presolve", "bound", "eliminate", "conflict", "search", ""],
}
# Sources of the module's own folder that every folder may include.
FIRST = {"transfer_time", "tuning"}
MOST_FILES = 30
MOST_LINES = 400
# Modules whose folders hold at most MOST_FILES files, besides those of ORDER.
SORTED = ["ops", "reference"]
PLANNING = ["mesh", "placement", "graph", "redistribute", "strategy", "propagate",
            "solver", "plan"] + SORTED
WALK = SRC.parent / "docs" / "architecture.md"
WALK_START = "passes through these 20 files"
MOST_STEPS = 20
# Sources whose header does not have their name.
HEADER_OF = {
    "request/plan_request": "shardprop/request/plan_request",
    "plan/make_plan": "shardprop/plan/make_plan",
    "report/plan_text": "shardprop/report/plan_text",
    "solver/search/solve": "shardprop/solver/solve",
    "plan/problem/build/problem_builder": "plan/problem/plan_problem",
    "plan/network/decode": "plan/network/plan_network",
    "plan/evaluate/evaluate": "plan/evaluate/plan_assignment",
    "tools/cli/graph_plan": "cli/graph_plan",
}
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
    return findings + check_folders([SRC / module / f for f in order])


def check_folders(folders):
    findings = []
    for place in folders:
        files = [f for f in place.iterdir() if f.is_file()]
        if len(files) > MOST_FILES:
            findings.append(f"{place.relative_to(SRC)} has {len(files)} files, more "
                            f"than {MOST_FILES}")
    return findings


def check_lengths():
    findings = []
    for module in PLANNING:
        for top in (SRC, SRC.parent / "include" / "shardprop"):
            for path in sorted((top / module).rglob("*")):
                if path.suffix not in (".h", ".cc"):
                    continue
                lines = path.read_text().count("\n")
                if lines > MOST_LINES:
                    findings.append(f"{path.relative_to(SRC.parent)} has {lines} lines, "
                                    f"more than {MOST_LINES}")
    return findings


def steps_of_walk():
    """Returns the depth and the source of each step, in order."""
    drawing = WALK.read_text().partition(WALK_START)[2].split("```")[1]
    for line in drawing.splitlines():
        if line.strip():
            yield (len(line) - len(line.lstrip())) // 2, line.split()[0]


def includes_reached(path, folders):
    """Returns the headers that a source includes, directly or through headers."""
    reached, left = set(), [path]
    while left:
        for found in re.findall(r'^#include ["<]([^">]+)\.h[">]',
                                left.pop().read_text(), re.MULTILINE):
            if found in reached:
                continue
            reached.add(found)
            left += [f for f in (folder / (found + ".h") for folder in folders)
                     if f.exists()]
    return reached


def check_walk():
    root = SRC.parent
    folders = [SRC, root / "include", root / "tools"]
    findings, above, count = [], [], 0
    for depth, step in steps_of_walk():
        path = root / step if step.startswith("tools/") else SRC / step
        if not path.exists():
            findings.append(f"walk of explain: {step} does not exist")
            continue
        count += 1
        del above[depth:]
        name = step.removesuffix(".cc")
        if above and HEADER_OF.get(name, name) not in includes_reached(above[-1],
                                                                       folders):
            findings.append(f"walk of explain: {above[-1].name} does not include the "
                            f"header of {step}")
        above.append(path)
    if not 0 < count <= MOST_STEPS:
        findings.append(f"walk of explain: {count} files, expected 1 to {MOST_STEPS}")
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
    for module in SORTED:
        findings += check_folders(f for f in sorted((SRC / module).rglob("*")) if f.is_dir())
    findings += check_folders(SRC / module for module in SORTED)
    findings += check_lengths() + check_walk()
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
