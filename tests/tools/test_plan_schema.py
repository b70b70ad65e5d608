"""The published JSON Schema of a plan and the plans that are written agree: every
written key is in the schema, and every key of the schema is written.

  test_plan_schema.py BINARY

The other tests here validate the plans that they write, too (command_line.py)."""

import collections
import copy
import json
import os
import random
import sys
import unittest

import command_line
import fixed_sizes
import plan_schema
import schema_predicate
from command_line import MLP, ROOT, TINY, Case, shardprop

DATA = ROOT / "tests/data/plans"
INPUTS = ROOT / "tests/golden/inputs"
LLAMA = TINY / "llama3_train.json.gz"
GPT2 = TINY / "gpt2_train.json.gz"
DEAR = ROOT / "examples/topologies/dear-compute.toml"
WORK = ("--work-limit", "20000000", "--time-limit", "50")
LITTLE_WORK = ("--work-limit", "1000")

# With all_explanations.json, which a test of the library writes, these have every key.
PLANS = [
    (MLP, "--mesh", "dp=2,tp=2", "--pin", "*=S(0),R"),
    (MLP, "--mesh", "dp=2,tp=2", "--memory", "2KiB", "--recipe", "ddp", "--pin", "x=S(0),R"),
    (LLAMA, "--mesh", "dp=2,tp=2", "--optimizer", "adamw", "--compare"),
    (GPT2, "--mesh", "3,2", "--topology", DEAR, "--optimizer", "adamw", *LITTLE_WORK),
    (TINY / "resnet_train.json.gz", "--mesh", "dp=2", "--recipe", "ddp=dp"),
    (TINY / "vit_infer.json.gz", "--mesh", "2", "--blocks", "3"),
    (TINY / "mixtral_infer.json.gz", "--mesh", "pp=2,dp=2", "--topology", DEAR, *LITTLE_WORK),
    (INPUTS / "custom_op.json", "--mesh", "2"),
    (INPUTS / "unbacked.json", "--mesh", "2", "--bound", "u0=8"),
]
SAVED = [(LLAMA, DATA / "llama3_train_schema2.json.gz")]


@unittest.skipUnless(plan_schema.jsonschema, "the package jsonschema is not installed")
class PlanSchema(Case):
    def written(self):
        """Yields plans that have every kind of key."""
        for graph, *more in PLANS:
            work = () if "--work-limit" in more else WORK
            done = shardprop("explain", graph, *work, *more, "--format", "json")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            yield json.loads(done.stdout)
        done = shardprop("explain", fixed_sizes.graph(self.folder, 4), "--mesh", "2",
                         "--size", "batch=12",
                         "--other-size", fixed_sizes.graph(self.folder, 8),
                         "--format", "json")
        self.answered(done)
        yield json.loads(done.stdout)
        for graph, plan in SAVED:
            done = shardprop("explain", graph, "--plan", plan, "--format", "json")
            self.answered(done)
            yield json.loads(done.stdout)
        yield json.loads((DATA / "all_explanations.json").read_text())

    def test_every_key_is_in_the_schema_and_every_key_of_it_is_written(self):
        seen = set()
        for plan in self.written():
            self.assertEqual(plan_schema.faults(plan), [])
            seen |= set(plan_schema.seen_in(plan))
        self.assertEqual(set(plan_schema.keys_of(plan_schema.SCHEMA)) - seen, set())

    def test_every_key_has_a_description(self):
        def undescribed(schema, where):
            if isinstance(schema, dict):
                for key, part in schema.get("properties", {}).items():
                    target = plan_schema.resolved(part)
                    if not {"description", "const"} & (set(part) | set(target)):
                        yield f"{where}.{key}"
                for key, part in schema.items():
                    yield from undescribed(part, f"{where}.{key}")
            elif isinstance(schema, list):
                for number, part in enumerate(schema):
                    yield from undescribed(part, f"{where}[{number}]")

        self.assertEqual(list(undescribed(plan_schema.SCHEMA, "$")), [])

    def test_plans_that_the_schema_does_not_allow(self):
        plan = json.loads((DATA / "all_explanations.json").read_text())
        self.assertEqual(plan_schema.faults(plan), [])

        def spoilt(spoil):
            spoilt = copy.deepcopy(plan)
            spoil(spoilt)
            return plan_schema.faults(spoilt)

        def add(at):
            at["surprise"] = 1

        for spoil in (
            add,
            lambda p: add(p["copies"][0]),
            lambda p: add(p["copies"][0]["reason"]),
            lambda p: add(p["copies"][0]["steps"][0]),
            lambda p: add(p["notes"][1]),
            lambda p: add(p["nodes"][0]["inputs"][0]),
            lambda p: p["copies"][0]["reason"].pop("alternative"),
            lambda p: p["copies"][0]["reason"].update(cause="whim"),
            lambda p: p["notes"][1].update(code="rumour"),
            lambda p: p["roles"][0].update(permille=1001),
            lambda p: p.update(schema="shardprop.plan/2"),
            lambda p: p.pop("status"),
            lambda p: p["copies"][0].update(dst=["X"]),
        ):
            self.assertNotEqual(spoilt(spoil), [])

    def test_the_quick_answer_is_that_of_jsonschema(self):
        """Single changes anywhere in a plan: both allow the result, or both do not."""
        plan = json.loads((DATA / "all_explanations.json").read_text())
        draw = random.Random(20261129)
        values = [None, True, 0, 1, -1, 2.0, 0.5, "x", "cost", "S(0)", [], {}, [1], {"x": 1}]
        allowed = collections.Counter()
        for _ in range(1500 if os.environ.get("SHARDPROP_FULL") == "1" else 150):
            changed = copy.deepcopy(plan)
            part = changed
            while True:
                keys = range(len(part)) if isinstance(part, list) else list(part)
                key = draw.choice(keys)
                inner = part[key]
                if not isinstance(inner, (dict, list)) or not inner or draw.random() < 0.1:
                    break
                part = inner
            change = draw.randrange(3)
            if change == 0:
                del part[key]
            elif change == 1 or isinstance(part, list):
                part[key] = draw.choice(values)
            else:
                part[draw.choice(["surprise", "text", "cause", "code"])] = draw.choice(values)
            expected = plan_schema.validator().is_valid(changed)
            self.assertEqual(plan_schema.is_valid()(changed), expected, (key, part))
            self.assertEqual(plan_schema.named_faults(changed) == [], expected)
            allowed[expected] += 1
        self.assertGreater(allowed[True], 10)
        self.assertGreater(allowed[False], 30)

    def test_a_keyword_without_code_is_refused(self):
        for schema in ({"maxItems": 1}, {"items": {"format": "uri"}}):
            with self.assertRaisesRegex(ValueError, "no code for the keywords"):
                schema_predicate.predicate(schema)

    def test_the_schema_is_open_to_later_keys(self):
        plan = json.loads((DATA / "all_explanations.json").read_text())
        plan["later"] = plan["copies"][0]["later"] = 1
        validator = plan_schema.jsonschema.Draft202012Validator(plan_schema.SCHEMA)
        self.assertTrue(validator.is_valid(plan))


if __name__ == "__main__":
    if plan_schema.jsonschema is None:
        print("skipped: the package jsonschema is not installed")
        sys.exit(77)
    command_line.main()
