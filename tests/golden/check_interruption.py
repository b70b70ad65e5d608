#!/usr/bin/env python3
"""SIGINT and SIGTERM leave the best answer so far, and it is said.

  python3 tests/golden/check_interruption.py --bin build/tools/shardprop
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 100
MOST_WAIT_S = 40


def grid_problem(width):
    """A contest problem that takes far longer than the test."""
    draw = random.Random(5)
    places = range(width * width)
    edges = [(v, o) for v in places for o in (v + 1, v + width) if o < width * width]
    return {
        "problem": {
            "name": "grid",
            "nodes": {
                "intervals": [[v, v + 2 * width] for v in places],
                "costs": [[draw.randrange(1000) for _ in range(6)] for _ in places],
                "usages": [[draw.randrange(100) for _ in range(6)] for _ in places],
            },
            "edges": {
                "nodes": [list(edge) for edge in edges],
                "costs": [[draw.randrange(1000) for _ in range(36)] for _ in edges],
            },
            "usage_limit": 75 * width,
        }
    }


def interrupted(binary, problem, signals):
    """Exit status, standard output and error; a signal a second."""
    process = subprocess.Popen(
        [binary, "solve", problem, "--time-limit", str(LIMIT_S), "--threads", "1",
         "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    started = time.monotonic()
    for number in signals:
        time.sleep(1.5)
        process.send_signal(number)
    out, messages = process.communicate(timeout=MOST_WAIT_S)
    if time.monotonic() - started > LIMIT_S / 2:
        raise AssertionError("the signal did not end the search")
    return process.returncode, out, messages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    binary = str(pathlib.Path(parser.parse_args().bin).resolve())
    with tempfile.TemporaryDirectory() as folder:
        problem = pathlib.Path(folder) / "grid.json"
        problem.write_text(json.dumps(grid_problem(60)), encoding="utf-8")
        for number in (signal.SIGINT, signal.SIGTERM):
            status, out, messages = interrupted(binary, str(problem), [number])
            solution = json.loads(out)
            assert status == 0, (number, status, messages)
            assert solution["status"] == "feasible", solution["status"]
            assert solution["cost"] >= solution["lower_bound"]
            assert len(solution["assignment"]) == 3600
            assert "interrupted: this is the best so far" in messages, messages
    print("interrupted searches kept what they had")
    return 0


if __name__ == "__main__":
    sys.exit(main())
