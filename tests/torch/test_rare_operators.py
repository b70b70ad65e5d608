"""Operators that few models have are planned, verified and emitted.

The operators are PyTorch's own and those of files of rules (examples/operators). Each
case is a model of one operator, and layouts of its arguments that shard it:
`explain` makes a plan with these, `verify` runs it on simulated ranks if it knows the
values of the operator, and the programs that `emit` writes give the values of the model.
$SHARDPROP_PACKAGE is the folder of the built package.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from typing import Callable

import running.package  # noqa: F401
import cuda_attention_kernels  # noqa: F401
import cuda_product_kernels  # noqa: F401  (CPU stand-ins for CUDA's kernels)
import library_kernels
import torch

import shardprop as sp
import shardprop.torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("SHARDPROP_BIN", str(ROOT / "build/release/tools/shardprop"))


@dataclasses.dataclass
class Case:
    """`pins` are the layouts on two ranks in which operators use arguments, and `stored`
    those in which the program receives them, by argument."""

    function: Callable
    args: tuple
    pins: dict[str, str]
    options: tuple[str, ...] = ()
    stored: dict[str, str] = dataclasses.field(default_factory=dict)


def _activation(use_gelu):
    def function(bias, x, weight):
        return torch.ops.aten._addmm_activation(bias, x, weight, use_gelu=use_gelu)

    return function


def _scaled(recipe):
    def function(x, weight, scale_x, scale_weight):
        return torch.ops.aten._scaled_mm_v2(
            x, weight.t(), [scale_x], [recipe], [0], [scale_weight], [recipe], [0],
            None, torch.bfloat16,
        )  # fmt: skip

    return function


def _random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def _f8(*shape):
    return _random(*shape).to(torch.float8_e4m3fn)


def _flash(query, key, value, ends):
    return torch.ops.aten._flash_attention_forward(
        query, key, value, ends, ends, 7, 7, 0.0, True, False
    )[:2]


def _dense_flash(query, key, value):
    return torch.ops.aten._flash_attention_forward(
        query, key, value, None, None, 6, 6, 0.0, False, False
    )[:2]


def _nms(boxes, scores):
    return boxes * 2, torch.ops.torchvision.nms(boxes, scores, 0.5)


def _roi_align(images, boxes):
    return torch.ops.torchvision.roi_align(images, boxes, 0.5, 3, 2, 2, True)


def _selective_scan(u, delta, A, B, C, D):
    return torch.ops.mamba_ssm.selective_scan(u, delta, A, B, C, D, None, None, True)


def _boxes(count):
    low = _random(count, 2).abs() * 4
    return torch.cat([low, low + 2 + _random(2, count).abs().t()], 1)


def _rules(library):
    return "--rule", f"@{library_kernels.FILES / library}.ops"


_SCAN = (_random(2, 4, 6), _random(2, 4, 6), -_random(4, 3).abs())

_ADDMM = (_random(6), _random(4, 8), _random(8, 6))

CASES = {
    "addmm_relu_by_rows": Case(_activation(False), _ADDMM, {"x": "S(0)"}),
    "addmm_relu_by_inner": Case(
        _activation(False), _ADDMM, {"x": "S(1)", "weight": "S(0)"}
    ),
    "addmm_gelu_by_columns": Case(
        _activation(True), _ADDMM, {"bias": "S(0)", "weight": "S(1)"}
    ),
    "scaled_mm_v2_by_inner": Case(
        _scaled(0),
        (_f8(32, 64), _f8(16, 64), torch.tensor(0.5), torch.tensor(2.0)),
        {"x": "S(1)", "weight": "S(1)"},
    ),
    "scaled_mm_v2_by_rows": Case(
        _scaled(1),
        (_f8(32, 64), _f8(16, 64), _random(32, 1).abs(), _random(1, 16).abs()),
        {"x": "S(0)", "scale_x": "S(0)"},
    ),
    "flash_of_sequences_by_heads": Case(
        _flash,
        (
            _random(12, 4, 8),
            _random(12, 2, 8),
            _random(12, 2, 8),
            torch.tensor([0, 5, 12], dtype=torch.int32),
        ),
        {"query": "S(1)", "key": "S(1)"},
    ),
    "flash_of_batches": Case(
        _dense_flash,
        (_random(2, 6, 4, 8), _random(2, 6, 2, 8), _random(2, 6, 2, 8)),
        {"query": "S(0)", "value": "S(0)"},
    ),
    "nms": Case(
        _nms,
        (_boxes(8), _random(8).abs()),
        {"scores": "R"},
        (*_rules("torchvision"), "--bound", "u0=8"),
        # The boxes are gathered for `nms`.
        {"boxes": "S(0)", "scores": "S(0)"},
    ),
    "roi_align_by_boxes": Case(
        _roi_align,
        (_random(2, 4, 8, 8), torch.cat([torch.tensor([[0.0], [1], [1], [0]]),
                                         _boxes(4)], 1)),
        {"boxes": "S(0)"},
        _rules("torchvision"),
    ),
    "roi_align_by_channels": Case(
        _roi_align,
        (_random(2, 4, 8, 8), torch.cat([torch.tensor([[0.0], [1], [1], [0]]),
                                         _boxes(4)], 1)),
        {"images": "S(1)"},
        _rules("torchvision"),
    ),
    "selective_scan_by_channels": Case(
        _selective_scan,
        (*_SCAN, _random(2, 3, 6), _random(2, 3, 6), _random(4)),
        {"u": "S(1)", "A": "S(0)"},
        _rules("mamba_ssm"),
    ),
    "selective_scan_of_groups": Case(
        _selective_scan,
        (*_SCAN, _random(2, 2, 3, 6), _random(2, 2, 3, 6), _random(4)),
        {"u": "S(1)", "B": "S(1)"},
        _rules("mamba_ssm"),
    ),
    "selective_scan_by_batch": Case(
        _selective_scan,
        (*_SCAN, _random(2, 3, 6), _random(2, 3, 6), _random(4)),
        {"u": "S(0)", "C": "S(0)"},
        _rules("mamba_ssm"),
    ),
}


class _Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def _run(*words):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class RareOperators(unittest.TestCase):
    def check(self, case, folder):
        exported = torch.export.export(_Model(case.function), case.args)
        graph = str(folder / "model.pt2")
        torch.export.save(exported, graph)
        names = case.function.__code__.co_varnames[: len(case.args)]
        inputs = exported.graph_signature.user_inputs
        pins = []
        for kind, layouts in ("used", case.pins), ("stored", case.stored):
            for name, layout in layouts.items():
                pins += ["--pin", f"{kind}:{inputs[names.index(name)]}={layout}"]
        plan = str(folder / "plan.json")
        planned = [graph, "--mesh", "2", *pins, *case.options]
        code, text = _run("explain", *planned, "--format", "json", "-o", plan)
        self.assertEqual(code, 0, text)
        code, text = _run("verify", graph, "--plan", plan)
        if case.options:
            # The rules of the files define no values, so that PyTorch has to verify.
            self.assertEqual(code, 4, text)
            self.assertIn("verify_programs", text)
        else:
            self.assertEqual(code, 0, text)
        code, text = _run("emit", graph, "--plan", plan, "-o", str(folder / "ranks"))
        self.assertEqual(code, 0, text)
        report = sp.torch.verify_programs(folder / "ranks", exported, case.args)
        self.assertTrue(report.ok, f"{report}")
        answer = json.loads(pathlib.Path(plan).read_text())
        for name, layout in case.pins.items():
            given = inputs[names.index(name)]
            used = [
                one["placements"]
                for node in answer["nodes"]
                for one in node["inputs"]
                if one["from"] == given
            ]
            self.assertTrue(used, f"no node uses {given}")
            self.assertEqual(used, [[layout]] * len(used))
        for name, layout in case.stored.items():
            value = answer["values"][inputs[names.index(name)]]
            self.assertEqual(value["placements"], [layout])

    def test_cases(self):
        for name, case in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as to:
                self.check(case, pathlib.Path(to))


if __name__ == "__main__":
    unittest.main()
