#!/usr/bin/env python3
"""Writes the archives under tests/data/pt2 with torch.export.save itself.

Unlike export_model.py, this keeps real weights and metadata as PyTorch writes them. It
removes only the metadata that name this machine or this run.

  mlp.pt2         dynamic batch, core ATen
  composite.pt2   composite and in-place operators
  train.pt2       forward and backward with batch norm's buffers and dropout,
                  by PyTorch's own _export_forward_backward
  linalg.pt2      operators with effects, and the tokens that order them
  two_models.pt2  one archive with two programs
  legacy.pt2      mlp.pt2 in the layout of PyTorch 2.7 and before
"""

import argparse
import pathlib
import sys

import torch
from torch import nn
from torch.export.experimental import _export_forward_backward
from torch.export.pt2_archive._package import package_pt2
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/shardprop/torch"))

import make_legacy_pt2  # noqa: E402
from exporting import metadata  # noqa: E402
from models import small  # noqa: E402

OUTPUT = ROOT / "tests/data/pt2"


class Classifier(nn.Module):
    """A small network whose training changes buffers and draws numbers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 10)

    def forward(self, images, labels):
        x = F.relu(self.norm(self.conv(images))).mean((2, 3))
        return F.cross_entropy(self.fc(F.dropout(x, 0.1, self.training)), labels)


class Solve(nn.Module):
    """Decomposes into factorisations and checks of whether they succeeded."""

    def forward(self, a, b):
        lower = torch.linalg.cholesky(a @ a.mT + torch.eye(4))
        return torch.linalg.inv(a), torch.linalg.solve(a, lower @ b)


def export_mlp():
    example = small.mlp_dynamic()
    program = torch.export.export(
        example.module, example.args, dynamic_shapes=example.dynamic_shapes
    )
    return program.run_decompositions()


def export_composite():
    return torch.export.export(*small.block_composite())


def export_train():
    args = (torch.zeros(4, 3, 6, 6), torch.zeros(4, dtype=torch.int64))
    return _export_forward_backward(torch.export.export(Classifier(), args))


def export_linalg():
    args = (torch.randn(6, 4, 4), torch.randn(6, 4, 2))
    return torch.export.export(Solve(), args).run_decompositions()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=pathlib.Path, default=OUTPUT)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)

    programs = {
        "mlp": export_mlp(),
        "composite": export_composite(),
        "train": export_train(),
        "linalg": export_linalg(),
    }
    for name, program in programs.items():
        metadata.make_portable(program)
        torch.export.save(program, output / f"{name}.pt2")
    package_pt2(
        str(output / "two_models.pt2"),
        exported_programs={
            "decoder": programs["composite"],
            "encoder": programs["mlp"],
        },
    )
    make_legacy_pt2.write_legacy(
        make_legacy_pt2.read_program(output / "mlp.pt2"), output / "legacy.pt2"
    )


if __name__ == "__main__":
    main()
