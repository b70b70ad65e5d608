"""Asks the command line tool, and survives its death.

    for answer in ask(["shardprop", "propagate", "--all", "--batch"], lines): ...

An answer is the tool's output for a line. If the tool dies or takes too long,
the batch is halved until the line is found: its answer is {"died": "exit -11"}.
"""

import json
import subprocess
import tempfile

_MOST_SECONDS = 20
_MOST_LINES = 24


def _run(command, lines):
    """(answers, None) or (None, how it died)."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as batch:
        batch.writelines(line + "\n" for line in lines)
        batch.flush()
        try:
            done = subprocess.run(
                [*command, batch.name],
                capture_output=True,
                text=True,
                timeout=_MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return None, f"no answer in {_MOST_SECONDS} s"
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(lines):
        said = done.stderr.strip().splitlines()
        return None, " ".join([f"exit {done.returncode}", *said[:1]])
    return [json.loads(answer) for answer in answers], None


def _ask_some(command, lines):
    answers, died = _run(command, lines)
    if died is None:
        return answers
    if len(lines) == 1:
        return [{"died": died}]
    half = len(lines) // 2
    return _ask_some(command, lines[:half]) + _ask_some(command, lines[half:])


def ask(command, questions):
    """One answer a question, in order. The batch file is the last argument."""
    lines = [json.dumps(question) for question in questions]
    for begin in range(0, len(lines), _MOST_LINES):
        yield from _ask_some(command, lines[begin : begin + _MOST_LINES])
