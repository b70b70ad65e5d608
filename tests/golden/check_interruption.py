#!/usr/bin/env python3
"""SIGINT and SIGTERM leave the best answer so far, and it is said.

  python3 tests/golden/check_interruption.py --bin build/tools/shardprop
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 100
MOST_WAIT_S = 40
GRAPH = pathlib.Path(__file__).parents[2] / "examples/graphs/tiny/llama3_train.json.gz"


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


def check_writing(binary, folder):
    """A signal that comes while the answer is written loses nothing of it."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [binary, "explain", GRAPH, "--mesh", "2,2", "--format", "json", "-o", pipe],
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with pipe.open(encoding="utf-8") as reader:
        start = reader.read(1)  # all is found by then, and more than a pipe holds
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        text = start + reader.read()
    messages = process.communicate(timeout=MOST_WAIT_S)[1]
    assert process.returncode == 0, (process.returncode, messages)
    assert json.loads(text)["status"] in ("optimal", "feasible"), text[:1000]


def check_ignored(binary, problem):
    """Who starts it with SIGINT ignored wants it to go on."""
    process = subprocess.Popen(
        [binary, "solve", problem, "--time-limit", "4", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    started = time.monotonic()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    messages = process.communicate(timeout=MOST_WAIT_S)[1]
    assert process.returncode == 0, (process.returncode, messages)
    assert "interrupted" not in messages, messages
    assert time.monotonic() - started > 2


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
        check_writing(binary, pathlib.Path(folder))
        check_ignored(binary, str(problem))
    print("interrupted searches kept what they had")
    return 0


if __name__ == "__main__":
    sys.exit(main())
