#!/usr/bin/env python3
"""Checks that no form, modifier or type rule asks for the name of its operator.

    scripts/check_rows.py            exit status 1 at a finding

A row passes arguments to its form, so that the row of another operator may use the form
too. So the sources of the rules never call `base_name()` of a call.
"""

import pathlib
import sys

OPS = pathlib.Path(__file__).resolve().parent.parent / "src" / "ops"
FOLDERS = ("definitions", "forms", "rules")


def findings():
    for folder in FOLDERS:
        for path in sorted((OPS / folder).rglob("*.*")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if "base_name()" in line:
                    yield f"{path.relative_to(OPS.parent.parent)}:{number}: {line.strip()}"


def main():
    found = list(findings())
    for one in found:
        print(one)
    if found:
        print("expected an argument of the form, which the row passes: pool(2)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
