#!/usr/bin/env python3
"""Runs the golden tests: commands whose whole output is known.

  python3 tests/golden/run.py --bin build/tools/shardprop            # check
  python3 tests/golden/run.py --bin build/tools/shardprop --rewrite  # accept

A case is a text file under tests/golden: lines that start with `$ shardprop`
are commands, run in order from the top of the repository; behind each stands
what it prints: standard output, then standard error with `! ` in front of every
line, then `exit N` unless N is 0. $TMP is a folder of the case's own. Lines that
start with `# ` are comment. Times that a clock measured are written as 0.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TIMEOUT_S = 120


def run(line, binary, folder):
    """The output of a command as it stands in a case."""
    words = [word.replace("$TMP", folder) for word in shlex.split(line)]
    if words[0] != "shardprop":
        raise ValueError(f"only shardprop runs here: {line}")
    done = subprocess.run(
        [binary, *words[1:]],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        env={"NO_COLOR": "1"},
        check=False,
    )
    text = done.stdout
    text += "".join(f"! {part}\n" for part in done.stderr.splitlines())
    if done.returncode != 0:
        text += f"exit {done.returncode}\n"
    text = text.replace(folder, "$TMP")
    return re.sub(r'"solve_seconds": [0-9.e+-]+', '"solve_seconds": 0', text)


def rerun(case, binary):
    """The case as it would be written now."""
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        for line in case.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("$ shardprop"):
                kept.append(line + run(line[2:], binary, folder))
            elif line.startswith("# "):
                kept.append(line)
    return "".join(kept)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", default=str(ROOT / "build/tools/shardprop"))
    parser.add_argument("--rewrite", action="store_true", help="accept all output")
    parser.add_argument("names", nargs="*", help="only cases whose name holds one")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.bin).resolve())

    cases = sorted(set(HERE.glob("*.txt")) - {HERE / "CMakeLists.txt"})
    if arguments.names:
        cases = [c for c in cases if any(name in c.stem for name in arguments.names)]
    if not cases:
        sys.exit("no golden cases")
    wrong = 0
    for case in cases:
        expected = case.read_text(encoding="utf-8")
        actual = rerun(case, binary)
        if actual == expected:
            continue
        wrong += 1
        if arguments.rewrite:
            case.write_text(actual, encoding="utf-8")
            print(f"rewritten: {case.name}")
            continue
        sys.stdout.writelines(
            difflib.unified_diff(
                expected.splitlines(keepends=True),
                actual.splitlines(keepends=True),
                f"{case.name} (expected)",
                f"{case.name} (now)",
            )
        )
    print(f"{len(cases)} golden cases, {wrong} {'new' if arguments.rewrite else 'wrong'}")
    return 0 if arguments.rewrite or wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
