#!/usr/bin/env python3
"""Exports architectures of transformers, torchvision and timm unchanged.

  export_strangers.py --source transformers --count 40 -o FOLDER

The first COUNT of the library by alphabet that build at a tiny size and that
torch.export.export takes plainly; `.run_decompositions()` only where torch
cannot save the program otherwise. FOLDER gets a NAME.pt2 for each and
exports.jsonl, one line for each name tried with what became of it.
"""

import argparse
import json
import os
import signal
import sys
import time
import warnings

import torch

from architectures import SOURCES, first_by_alphabet


def export(source, name, path):
    """How `name` was saved: "plain" or "decomposed"."""
    torch.manual_seed(0)
    module, args, kwargs = source.build(name)
    program = torch.export.export(module, args, kwargs, strict=False)
    try:
        torch.export.save(program, path)
        return "plain"
    except Exception:
        torch.export.save(program.run_decompositions(), path)
        return "decomposed"


def in_child(source, name, path, seconds):
    """The line of `name`; a model may take the process down with it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(seconds)
        began = time.time()
        line = {"source": source.name, "name": name}
        try:
            line["saved"] = export(source, name, path)
        except BaseException as error:
            text = str(error).strip().split("\n")[0]
            line["failed"] = f"{type(error).__name__}: {text}"[:200]
        line["seconds"] = round(time.time() - began, 1)
        os.write(write, json.dumps(line).encode()[:60000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    if text:
        return json.loads(text)
    return {"source": source.name, "name": name, "failed": "died, or took too long"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", choices=SOURCES, required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    os.makedirs(options.output, exist_ok=True)
    source = SOURCES[options.source]
    source.names()  # imports the library once, for all children

    with open(os.path.join(options.output, "exports.jsonl"), "a") as lines:

        def attempt(name):
            path = os.path.join(options.output, f"{name}.pt2")
            line = in_child(source, name, path, options.seconds)
            print(json.dumps(line), file=lines, flush=True)
            print(json.dumps(line), flush=True)
            if "saved" not in line and os.path.exists(path):
                os.remove(path)
            return "saved" in line

        first_by_alphabet(source, options.count, attempt)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
