#!/usr/bin/env python3
"""Reads and plans what export_strangers.py saved, and writes a table of it.

  read_strangers.py --bin build/tools/shardprop FOLDER... -o strangers.md

Each program is read as it is, every operator of it must have strategies, and it
is planned, strictly, on two meshes. Exits 1 where one is refused, and prints what lacks.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import time

MESHES = ("2,4", "2,2,2")


def run(command, seconds):
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return done, time.monotonic() - began
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - began


def read(binary, path, limit):
    row = {"name": path.stem}
    done, row["read_s"] = run(
        [binary, "ops", "--supported", path, "--format", "json"], limit
    )
    if done is None or done.returncode not in (0, 4):
        row["refused"] = done.stderr.strip().split("\n")[0] if done else "no answer"
        return row
    ops = json.loads(done.stdout)
    row["calls"] = sum(op["count"] for op in ops)
    row["unsupported"] = {op["op"]: op["count"] for op in ops if not op["supported"]}
    row["notes"] = done.stderr.count("taken as it is written")
    for mesh in MESHES:
        command = [binary, "explain", path, "--mesh", mesh, "--strict"]
        command += ["--format", "json", "--gap", "0", "--time-limit", str(limit)]
        done, row[mesh] = run(command, limit + 60)
        if done is None or done.returncode != 0:
            row[mesh] = None
            row["not planned"] = done.stderr.strip()[-200:] if done else "no answer"
    return row


def seconds_of(value):
    return "-" if value is None else f"{value:.1f}"


def table(source, rows, exports):
    supported = [r for r in rows if not r.get("unsupported") and "refused" not in r]
    planned = [r for r in supported if all(r[m] is not None for m in MESHES)]
    failed = [line for line in exports if "failed" in line]
    lines = [
        f"## {source}",
        "",
        f"{len(rows)} programs, {len(supported)} fully supported, {len(planned)} of "
        f"them planned on {' and '.join(MESHES)}; "
        f"{sum(line.get('saved') == 'decomposed' for line in exports)} saved after "
        f"`.run_decompositions()`; {len(failed)} names before the last one were not "
        "built or not exported.",
        "",
        "| model | calls | without strategies | read, s | 2,4, s | 2,2,2, s |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "refused" in row:
            lines.append(f"| {row['name']} | - | refused: {row['refused']} | - | - | - |")
            continue
        lacks = ", ".join(f"`{op}` {n}" for op, n in row["unsupported"].items())
        lines.append(
            f"| {row['name']} | {row['calls']} | {lacks} | {row['read_s']:.1f} | "
            + " | ".join(seconds_of(row[mesh]) for mesh in MESHES)
            + " |"
        )
    if failed:
        lines += ["", "Not built or not exported:", ""]
        lines += [f"* {line['name']}: {line['failed']}" for line in failed]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", default=os.environ.get("SHARDPROP_BIN"), required=False)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--time-limit", type=int, default=60)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    text = [
        "# Architectures that nobody chose",
        "",
        "By `tests/torch/models/export_strangers.py` and `read_strangers.py`: the first "
        "of each library by alphabet that build at a tiny size and that torch itself "
        "exports plainly.",
        "",
    ]
    refused = 0
    lacking = collections.Counter()
    for folder in options.folders:
        log = folder / "exports.jsonl"
        exports = [json.loads(line) for line in log.read_text().splitlines()]
        rows = []
        for path in sorted(folder.glob("*.pt2")):
            rows.append(read(options.bin, path, options.time_limit))
            print(json.dumps(rows[-1]), flush=True)
            refused += "refused" in rows[-1]
            lacking.update(rows[-1].get("unsupported", {}))
        text.append(table(folder.name, rows, exports))
    for op, count in lacking.most_common():
        print(f"{count:>6}  {op}")
    if options.output:
        options.output.write_text("\n".join(text))
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
