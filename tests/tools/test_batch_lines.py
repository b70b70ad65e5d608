"""Malformed lines of `propagate`: each loses only its own answer, and its error
names operator, line and place."""

import json
import resource
import time
import unittest

import command_line
from command_line import Case, shardprop

RELU = {
    "op": "aten.relu.default",
    "mesh": [2],
    "args": [{"shape": [8], "dtype": "f32", "placements": ["R"]}],
}
DEEP = "[" * 100_000 + "]" * 100_000
SECONDS = 10  # for what was quadratic; all take well under one


def tensor(*shape, dtype="f32", **more):
    return {"shape": shape, "dtype": dtype, "placements": ["R"], **more}


def mm(**more):
    return {
        "op": "aten.mm.default",
        "mesh": [2],
        "args": [tensor(8, 8), tensor(8, 8)],
        **more,
    }


class Lines(Case):
    def answers(self, *lines, flags=()):
        lines = [x if isinstance(x, (str, bytes)) else json.dumps(x) for x in lines]
        text = b"\n".join(x.encode() if isinstance(x, str) else x for x in lines)
        done = shardprop("propagate", "--batch", self.file("b.jsonl", text), *flags)
        self.answered(done)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(lines))
        return answers

    def error(self, line, path, words):
        """The answer to one line is this error at this place."""
        answer = self.answers(line)[0]
        self.assertNotIn("outputs", answer)
        self.assertEqual(answer["error"]["location"], f"line 1: {path}")
        self.assertIn(words, answer["error"]["message"])
        return answer

    def test_operands_that_do_not_fit_have_a_place(self):
        self.error({**mm(), "args": [tensor(8, 2), tensor(8, 2)]}, "$.args[1]",
                   "a dim of size 8 does not match the 2")
        add = {"op": "aten.add.Tensor", "mesh": [2]}
        self.error({**add, "args": [tensor(8, 2)], "kwargs": {"other": tensor(8, 3)}},
                   "$.kwargs.other", "sizes 2 and 3 do not broadcast")
        cat = {"op": "aten.cat.default", "mesh": [2]}
        self.error({**cat, "args": [[tensor(8, 2), tensor(8, 2), tensor(8, 3)]]},
                   "$.args[0][2]", "sizes differ outside the dim that is joined")

    def test_near_names_of_operators(self):
        answer = self.error({**mm(), "op": "aten.mmm.default"}, "$.op", "declared")
        self.assertEqual(answer["error"]["help"], "did you mean `aten.mm.default`?")

    def test_sums_of_complex_numbers_stay(self):
        for op, dtype in (("real", "c64"), ("view_as_real", "c64"),
                          ("conj_physical", "c64"), ("view_as_complex", "f32")):
            for partial in ("P(sum)", "P(avg)"):
                x = tensor(8, 2, dtype=dtype, placements=[partial])
                answer = self.answers({"op": f"aten.{op}.default", "mesh": [2],
                                       "args": [x]})[0]
                self.assertEqual(answer["outputs"][0]["placements"], [partial])
                self.assertEqual(answer["cost_us"], 0)

    def test_text(self):
        cut = {**mm(), "args": [tensor(8, 8), {**tensor(8, 8), "placements": ["S(0)"]}]}
        lines = "\n".join(map(json.dumps, (cut, {**cut, "op": "aten.mmm.default"})))
        file = self.file("b.jsonl", lines)
        done = shardprop("propagate", "--batch", file, "--format", "text")
        self.answered(done)
        first, takes, moves, makes, *error = done.stdout.splitlines()
        self.assertTrue(first.startswith("aten.mm.default on d0=2: "), first)
        self.assertEqual(takes, "  takes  f32[8,8] S(1)  f32[8,8] S(0)")
        self.assertEqual(moves, "  moves  input 0  R -> S(1)")
        self.assertEqual(makes, "  makes  f32[8,8] P(sum)")
        self.assertTrue(error[0].startswith("error[SP0508]"), error)
        self.assertEqual(error[1], "  --> line 2: $.op")
        done = shardprop("propagate", "--batch", file, "--format", "text", "--all")
        self.assertIn("\n  S(1),S(0)->P(sum)\n", done.stdout)

    def test_a_deep_line_costs_only_itself(self):
        line = json.dumps(RELU)
        for deep in (
            line.replace('"args"', '"args": ' + DEEP + ', "x"'),
            line.replace("[2]", DEEP),
            DEEP,
        ):
            answers = self.answers(RELU, deep, RELU)
            self.assertEqual(answers[0], answers[2])
            self.assertIn("outputs", answers[0])
            self.assertIn("nests deeper", answers[1]["error"]["message"])
            self.assertIn("line 2: ", answers[1]["error"]["location"])

    def test_wide_lines_take_linear_time(self):
        wide = {f"k{i}": i for i in range(100_000)}
        began = time.monotonic()
        self.error(mm(**wide), "$", "unknown key `k0`")
        answer = self.answers({**mm(), "kwargs": wide})[0]
        self.assertIn("error", answer)
        self.took_time(time.monotonic() - began, SECONDS)

    def test_lines_that_are_no_json_say_where(self):
        error = self.answers(RELU, '{"op":\n')[1]["error"]
        self.assertEqual(error["location"], "line 2: $.op")
        self.assertEqual(error["notes"], ["at byte 6"])
        self.assertIn("one JSON object a line", error["help"])

    def test_lines_that_are_no_lines(self):
        for line, words in {
            "": None,
            "[1": "the text ends too early",
            "nope": "not JSON",
            "[]": "not an object",
            '{"op": "aten.mm.default"}': "`mesh` is missing",
            b'{"op": "\xff", "mesh": [2]}': "UTF-8",
            '{"op": 5, "mesh": [2]}': "expected a string",
            '{"op": "a", "op": "b", "mesh": [2]}': "twice",
        }.items():
            if words is None:
                continue
            answer = self.answers(line)[0]
            self.assertIn(words, answer["error"]["message"])
            self.assertTrue(answer["error"]["location"].startswith("line 1: $"))

    def test_errors_name_the_operator_line_and_place(self):
        answer = self.error({"op": "aten.nope", "mesh": [2]}, "$.op", "not a declared")
        self.assertEqual(answer["op"], "aten.nope")
        for shape, path in (
            ([8.0, 8], "$.args[1].shape[0]"),
            (["a", 5], "$.args[1].shape[0]"),
            ([8, 1e30], "$.args[1].shape[1]"),
            ([8, -1], "$.args[1].shape[1]"),
        ):
            answer = self.error(mm(args=[tensor(8, 8), tensor(*shape)]), path, "")
            self.assertEqual(answer["op"], "aten.mm.default")
        one = tensor(8, 8)
        self.error(mm(args=[one, {"dtype": "f32"}]), "$.args[1]", "`shape` is missing")
        self.error(mm(args=[one, {"shape": [8, 8]}]), "$.args[1]", "`dtype` is missing")
        bad = {**one, "dtype": "F32"}
        self.error(mm(args=[one, bad]), "$.args[1].dtype", "`F32`")
        bad = {**one, "placements": ["S(2)"]}
        self.error(mm(args=[one, bad]), "$.args[1]", "")
        bad = {**one, "placements": [0]}
        self.error(mm(args=[one, bad]), "$.args[1].placements[0]", "expected a string")
        bad = {**one, "placement": ["R"]}
        self.error(mm(args=[one, bad]), "$.args[1]", "unknown key `placement`")
        self.error(mm(args=[one, {"shape": [8, 8], "dtype": "f32"}]), "$.args[1]", "none")
        self.error(mm(mesh=[2, "a"]), "$.mesh[1]", "expected an integer")
        self.error(mm(mesh="dp=x"), "$.mesh", "")

    def test_arguments_of_the_wrong_kind(self):
        self.error(mm(kwargs=5), "$.kwargs", "expected an object")
        self.error(mm(kwargs=None), "$.kwargs", "expected an object")
        self.error(mm(args=5), "$.args", "expected a list")
        self.error(mm(args={}), "$.args", "expected a list")
        self.error(mm(args=[[tensor(8, 8), 1]]), "$.args[0][1]", "mixes")
        self.error(mm(kwarg={}), "$", "unknown key `kwarg`")
        line = {"op": "aten.sum.dim_IntList", "mesh": [2], "args": [tensor(8, 8)]}
        line["args"].append([2**64 - 1])
        self.error(line, "$.args[1][0]", "64 bits")

    def test_stated_outputs_agree_with_the_arguments(self):
        right = {"shape": [8, 8], "dtype": "f32"}
        self.assertIn("cost_us", self.answers(mm(outputs=[right]))[0])
        self.error(mm(outputs=[]), "$.outputs", "1 output, not 0")
        self.error(mm(outputs=None), "$.outputs", "expected a list")
        self.error(mm(outputs=[right] * 2), "$.outputs", "1 output, not 2")
        wrong = {"shape": [1, 1], "dtype": "f32"}
        self.error(mm(outputs=[wrong]), "$.outputs[0]", "f32[1,1]")
        wrong = {"shape": [8, 8], "dtype": "f64"}
        self.error(mm(outputs=[wrong]), "$.outputs[0]", "f64[8,8]")

    def test_arguments_that_no_operator_takes(self):
        convolution = [tensor(1, 4, 5, 5), tensor(4, 4, 1, 1), None]
        convolution += [[1, 1], [0, 0], [1, 1], False, [0, 0], 0]
        backward = [tensor(1, 4, 3), tensor(1, 2, 3), tensor(4, 2, 1), [4], [1], [0]]
        backward += [[1], False, [0], 0, [True, True, True]]
        square = tensor(4, 4)
        for op, args in {
            "aten.convolution.default": convolution,
            "aten.convolution_backward.default": backward,
            "aten.permute.default": [square, [0, 1_000_000]],
            "aten._softmax.default": [square, 99, False],
            "aten.select.int": [square, 99, 0],
            "aten.squeeze.dims": [tensor(), [1]],
            "aten.scatter.src": [square, 0, tensor(4, dtype="i64"), tensor(4)],
        }.items():
            for flags in ((), ("--all",)):
                with self.subTest(op, flags=flags):
                    line = {"op": op, "mesh": [2], "args": args}
                    answers = self.answers(RELU, line, RELU, flags=flags)
                    self.assertTrue(answers[1]["error"]["message"])
                    self.assertEqual(answers[0], answers[2])

    def test_names_that_are_cut_in_the_middle_of_a_character(self):
        long = "x" * 79 + "\u00e9" * 100
        self.error(mm(**{long: 1}), "$", "unknown key `xxx")
        self.assertEqual(self.answers({"op": long, "mesh": [2]})[0]["op"], long)
        self.error(mm(args=[{**tensor(8), "dtype": long}]), "$.args[0].dtype", "`xxx")
        bad = {**tensor(8), "placements": [long]}
        self.error(mm(args=[bad]), "$.args[0].placements", "`xxx")

    @unittest.skipIf(command_line.SANITIZED, "sanitizers take addresses")
    def test_an_answer_without_memory_costs_only_itself(self):
        """An argument for each of 16 million ranks takes some 500 MB."""
        view = {"op": "aten.view.default", "mesh": [16_000_000],
                "args": [tensor(20_000_000, 4, placements=["S(0)"]),
                         [20_000_000, 2, 2]]}
        lines = "\n".join(map(json.dumps, (RELU, view, RELU)))
        limit = (300_000 << 10, 300_000 << 10)
        done = shardprop(
            "propagate", "--batch", self.file("b.jsonl", lines),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.answered(done)
        first, second, third = map(json.loads, done.stdout.splitlines())
        self.assertIn("outputs", first)
        self.assertEqual(first, third)
        self.assertEqual(second["op"], "aten.view.default")
        self.assertEqual(second["error"]["code"], "SP0910")
        self.assertEqual(second["error"]["location"], "line 2")

    @unittest.skipIf(command_line.SANITIZED, "sanitizers take addresses")
    def test_many_operands_take_memory_in_proportion(self):
        one = tensor(8, 4, placements=["S(0)"])
        other = tensor(8, 5, placements=["S(0)"])
        lines = "\n".join(
            json.dumps({"op": op, "mesh": [2], "args": args})
            for op, args in (
                ("aten.cat.default", [[one, other] * 10_000, 1]),
                ("aten.stack.default", [[one] * 20_000, 1]),
                ("aten._foreach_add.List", [[one, other] * 10_000] * 2),
                ("aten.split_with_sizes.default",
                 [tensor(8, 50_000, placements=["S(0)"]), [2, 3] * 10_000, 1]),
            ))
        limit = (400_000 << 10, 400_000 << 10)
        begin = time.monotonic()
        done = shardprop(
            "propagate", "--batch", self.file("b.jsonl", lines),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.assertLess(time.monotonic() - begin, 4 * SECONDS)
        self.answered(done)
        for answer in map(json.loads, done.stdout.splitlines()):
            with self.subTest(answer["op"]):
                self.assertIn("outputs", answer, answer.get("error"))

    @unittest.skipIf(command_line.SANITIZED, "sanitizers take addresses")
    def test_strategies_with_more_numbers_than_memory_are_refused_at_once(self):
        """Thousands of strategies, with a number for each of a million ranks."""
        sizes = [1 << 20, 8, 8]
        view = {"op": "aten.view.default", "mesh": [16] * 5,
                "args": [{"shape": [1 << 20, 64], "dtype": "f32"}, sizes]}
        limit = (4_000_000 << 10, 4_000_000 << 10)
        begin = time.monotonic()
        done = shardprop(
            "propagate", "--all", "--batch", self.file("b.jsonl", json.dumps(view)),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.assertLess(time.monotonic() - begin, 20)
        self.answered(done)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["code"], error["location"]), ("SP0910", "line 1"))
        self.assertIn("in all strategies", error["message"])

    def test_a_line_without_end(self):
        line = '{"op": "' + "x" * (65 << 20) + '"}'
        answers = self.answers(RELU, line, RELU)
        self.assertEqual(answers[1]["error"]["code"], "SP0402")
        self.assertEqual(answers[0], answers[2])


if __name__ == "__main__":
    command_line.main()
