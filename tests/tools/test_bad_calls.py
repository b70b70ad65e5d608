"""Calls that no operator takes, through `propagate --batch`: every call of
tests/golden/index_spaces.list, damaged in every way below. Each line is answered,
by an error where the damage is certain to leave no call; the command itself never
fails. Which operand is damaged is drawn from SEED."""

import json
import pathlib
import random
import re
import sys
import unittest

import command_line
from command_line import ROOT, Case, shardprop

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import calls  # noqa: E402

SEED = 12
FEWEST = 3000


def _json(value):
    if isinstance(value, calls.Tensor):
        tensor = {"shape": value.shape, "dtype": value.dtype, "placements": ["R"]}
        if value.strides is not None:
            tensor["strides"] = value.strides
        return tensor
    if isinstance(value, list):
        return [_json(element) for element in value]
    return value


def _line(call, **changes):
    line = {
        "op": call.op,
        "mesh": [2],
        "args": [_json(value) for value in call.args],
        "kwargs": {name: _json(value) for name, value in call.kwargs.items()},
    }
    return {**line, **changes}


def _without_dims(value):
    if isinstance(value, list):
        return [_without_dims(element) for element in value]
    if isinstance(value, dict) and "placements" in value:
        return {"shape": [], "dtype": value["dtype"], "placements": ["R"]}
    return value


def _damaged(call, rng):
    """(line, whether it is certainly no call)"""
    whole = _line(call)
    args, kwargs = whole["args"], whole["kwargs"]
    if args:
        needs = isinstance(call.args[0], calls.Tensor)
        yield {**whole, "args": [], "kwargs": {}}, needs
        yield {**whole, "args": args[1:]}, False
        yield {**whole, "args": ["x", *args[1:]]}, isinstance(
            call.args[0], calls.Tensor | list
        )
    yield {**whole, "args": [*args, *[{}] * 30]}, True
    yield {**whole, "kwargs": {**kwargs, "no_such_argument": 1}}, True
    yield {**whole, "op": call.op + "_nope"}, True
    yield {**whole, "mesh": [0]}, True
    tensors = [i for i, value in enumerate(call.args) if isinstance(value, calls.Tensor)]
    if not tensors:
        return
    at = rng.choice(tensors)
    tensor = args[at]

    def other(**changes):
        return {**whole, "args": [*args[:at], {**tensor, **changes}, *args[at + 1 :]]}

    yield other(placements=["R", "R"]), True
    yield other(placements=["S(9)"]), True
    yield other(dtype="f33"), True
    yield other(shape=[-1, *tensor["shape"]]), True
    yield other(shape=[*tensor["shape"], 5, 7, 9]), False
    yield other(shape=[size + 1 for size in tensor["shape"]]), False
    yield other(dtype=rng.choice(["bool", "i64", "c64"])), False
    yield other(shape=[]), False
    yield other(shape=tensor["shape"][1:]), False
    yield other(shape=[0 for _ in tensor["shape"]]), False
    yield {**whole, "args": [_without_dims(value) for value in args]}, False
    for i, value in enumerate(call.args):
        if isinstance(value, int) and not isinstance(value, bool):
            for odd in (-1, 0, 7, -(2**63), 2**62):
                yield {**whole, "args": [*args[:i], odd, *args[i + 1 :]]}, False


def _declared():
    """Name and declared arguments of each operator of the table."""
    for line in (ROOT / "src/ops/aten_schemas.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.partition("(")
        name = name.replace("::", ".", 1)
        arguments = rest[: rest.rindex(") -> ")]
        yield name if name.count(".") == 2 else name + ".default", arguments


def _some_call(op, declared):
    """A call of the declared types, which need not fit each other."""
    tensor = {"shape": [4, 4], "dtype": "f32", "placements": ["R"]}
    samples = {"Tensor": tensor, "bool": True, "str": "sum", "ScalarType": "f32"}
    samples |= {"Device": "cpu", "Layout": "strided", "MemoryFormat": "contiguous_format"}
    given = {}
    for part in re.sub(r"\(.*?\)|(?<==)\[.*?\]", "", declared).split(", "):
        kind, _, name = part.rpartition(" ")
        if name in ("", "*") or "=" in name:
            continue
        base, *many = kind.split("[")
        sample = samples.get(base, 1)
        given[name] = None if "?" in kind else [sample] * 2 if many else sample
    return {"op": op, "mesh": [2], "args": [], "kwargs": given}


class BadCalls(Case):
    def test_no_declared_operator_is_taken_for_a_misspelling(self):
        rows = json.loads(shardprop("ops", "--format", "json").stdout)
        known = {row["op"] for row in rows}
        asked = [_some_call(*one) for one in _declared() if one[0] not in known]
        self.assertGreater(len(asked), 500)
        text = "".join(json.dumps(line) + "\n" for line in asked)
        done = shardprop("propagate", "--batch", self.file("lines.jsonl", text))
        self.answered(done)
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(asked))
        for line, answer in zip(asked, answers, strict=True):
            self.assertNotIn("did you mean", answer, line)
            # No sharding rule, or a result whose shape is not known.
            self.assertRegex(answer, '"SP0(201|506)"', line)

    def test_every_damaged_call_is_answered(self):
        rng = random.Random(SEED)
        asked = [
            damage for call, _ in calls.lines() for damage in _damaged(call, rng)
        ]
        text = "".join(json.dumps(line) + "\n" for line, _ in asked).encode()
        done = shardprop("propagate", "--batch", self.file("bad.jsonl", text))
        self.answered(done)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(asked))
        errors = 0
        for (line, certain), answer in zip(asked, answers, strict=True):
            errors += "error" in answer
            if "error" in answer:
                self.assertTrue(answer["error"]["message"], line)
                self.assertRegex(answer["error"]["code"], r"^SP\d{4}$", line)
            elif certain:
                self.fail(f"answered: {json.dumps(line)}")
        self.assertGreater(errors, FEWEST)


if __name__ == "__main__":
    command_line.main()
