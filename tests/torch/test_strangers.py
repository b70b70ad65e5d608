"""Tests that architectures exported unchanged are read, fully supported and
planned.

A few of those of bench/results/strangers.md, drawn by SHARDPROP_SLICE and
SHARDPROP_SEED, so that other slices and seeds take others; all libraries and names
with SHARDPROP_FULL=1. SHARDPROP_BIN names the command line tool.
models/export_strangers.py and models/read_strangers.py do all of them, for the table.
"""

import importlib.util
import os
import pathlib
import random
import re
import sys
import tempfile
import unittest
import warnings

import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE / "models"))
from architectures import SOURCES  # noqa: E402
from export_strangers import in_child  # noqa: E402
from read_strangers import MESHES, read  # noqa: E402

BINARY = os.environ.get("SHARDPROP_BIN", str(ROOT / "build/release/tools/shardprop"))
FULL = os.environ.get("SHARDPROP_FULL") == "1"
SEED = f"{os.environ.get('SHARDPROP_SEED', '')} {os.environ.get('SHARDPROP_SLICE', '')}"
FEW = 20 if FULL else 3
EXPORT_SECONDS = 180 if FULL else 60
PLAN_SECONDS = 60 if FULL else 3


def known_names(library):
    """Returns the names of the models that torch could export when the table
    was written."""
    text = (ROOT / "bench/results/strangers.md").read_text()
    part = text.split(f"\n## {library}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\w.-]+) \| \d+ \|", part, re.MULTILINE)
    return rows


class Strangers(unittest.TestCase):
    def check(self, library):
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"{library} is not installed")
        source = SOURCES[library]
        every = source.names()  # imports the library once, for all children
        names = every if FULL else [n for n in known_names(library) if n in every]
        random.Random(f"{library} {SEED}").shuffle(names)
        done = 0
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                path = pathlib.Path(folder) / f"{name}.pt2"
                line = in_child(source, name, path, EXPORT_SECONDS)
                if "saved" not in line:
                    print(f"{library} {name}: torch exports it not: {line['failed']}")
                    continue
                with self.subTest(library=library, name=name, seed=SEED):
                    row = read(BINARY, path, PLAN_SECONDS)
                    print(f"{library} {name}: {row}")
                    self.assertNotIn("refused", row)
                    self.assertEqual(row["unsupported"], {})
                    for mesh in MESHES:
                        self.assertIsNotNone(row[mesh], row.get("not planned"))
                path.unlink()
                done += 1
                if done == FEW:
                    break
        self.assertEqual(done, FEW, "too few were exported")

    def test_transformers(self):
        self.check("transformers")

    def test_torchvision(self):
        self.check("torchvision")

    def test_timm(self):
        self.check("timm")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    unittest.main()
