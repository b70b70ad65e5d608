"""The proof of the rules finds wrong strategies, and only those.

A proof that accepts everything would print "0 wrong" as well: strategies that
are right and strategies that are wrong in one place are put to it by hand.
"""

import unittest

import torch

import cuda_attention_kernels
from sharding import layouts, partials
from sharding.capture import Call, Meta, Operand
from sharding.proof import prove


def meta(*shape, dtype="f32"):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return Meta(shape, tuple(strides), dtype)


def call_of(op, args, inputs, outputs):
    return Call(op, tuple(args.items()), tuple(inputs), tuple(outputs))


def strategy(text, **more):
    """"S(0),R->S(0)" on one mesh dim; operands on several in brackets."""

    def side(operands):
        operands = operands.strip()
        if operands.startswith("["):
            return [o.split(",") for o in operands.strip("[]").split("],[")]
        if not operands:
            return []
        flat, depth, entry = [], 0, ""
        for letter in operands + ",":
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                flat.append([entry])
                entry = ""
            else:
                entry += letter
        return flat

    inputs, outputs = map(side, text.split("->"))
    return {"inputs": inputs, "outputs": outputs, "local_args": {}, **more}


MM = call_of(
    "aten.mm.default",
    {"self": Operand(0), "mat2": Operand(1)},
    [meta(5, 6), meta(6, 4)],
    [meta(5, 4)],
)
ADD = call_of(
    "aten.add.Tensor",
    {"self": Operand(0), "other": Operand(1)},
    [meta(5, 6), meta(6)],
    [meta(5, 6)],
)
MEAN = call_of(
    "aten.mean.dim", {"self": Operand(0), "dim": (0,)}, [meta(5, 6)], [meta(6)]
)
VIEW = call_of(
    "aten.view.default",
    {"self": Operand(0), "size": (24,)},
    [meta(4, 6)],
    [meta(24)],
)
DROPOUT = call_of(
    "aten.native_dropout.default",
    {"input": Operand(0), "p": 0.25, "train": True},
    [meta(8, 9)],
    [meta(8, 9), meta(8, 9, dtype="bool")],
)
SOFTMAX = call_of(
    "aten._softmax.default",
    {"self": Operand(0), "dim": 1, "half_to_float": False},
    [meta(5, 6)],
    [meta(5, 6)],
)


def softmax_program(reduce_op):
    def op(name, **args):
        return {"op": name, "args": args}

    def reduce(step, kind):
        return {
            "collective": "all_reduce",
            "reduce_op": kind,
            "mesh_dims": ["d0"],
            "value": {"step": step, "result": 0},
        }

    def result(step):
        return {"step": step, "result": 0}

    return {
        "steps": [
            op("aten.amax.default", self={"input": 0}, dim=[1], keepdim=True),
            reduce(0, "max"),
            op("aten.sub.Tensor", self={"input": 0}, other=result(1)),
            op("aten.exp.default", self=result(2)),
            op("aten.sum.dim_IntList", self=result(3), dim=[1], keepdim=True),
            reduce(4, reduce_op),
            op("aten.div.Tensor", self=result(3), other=result(5)),
        ],
        "outputs": [result(6)],
    }


class Strategies(unittest.TestCase):
    def why_wrong(self, call, mesh, text, **more):
        found = prove(call, [(mesh, strategy(text, **more))], seed=0)
        return found[0][2] if found else None

    def assert_right(self, *args, **more):
        self.assertIsNone(self.why_wrong(*args, **more))

    def assert_wrong(self, *args, because="", **more):
        self.assertIn(because, self.why_wrong(*args, **more) or "not found")

    def test_products(self):
        for text in ("S(0),R->S(0)", "R,S(1)->S(1)", "S(1),S(0)->P(sum)"):
            self.assert_right(MM, (2,), text)
            self.assert_right(MM, (4,), text)  # an empty shard of the 5 or 6
        self.assert_right(MM, (2,), "P(avg),R->P(avg)")
        self.assert_right(MM, (2, 3), "[S(0),S(1)],[R,S(0)]->[S(0),P(sum)]")
        self.assert_wrong(MM, (2,), "S(1),S(0)->P(avg)", because="off by")
        self.assert_wrong(MM, (2,), "S(1),S(0)->R", because="replicas differ")
        self.assert_wrong(MM, (2,), "P(sum),P(sum)->P(sum)", because="off by")
        self.assert_wrong(MM, (2,), "P(max),R->P(max)", because="off by")
        self.assert_wrong(MM, (2,), "S(0),R->S(1)", because="has shape")
        self.assert_wrong(MM, (2,), "S(1),R->P(sum)", because="RuntimeError")

    def test_sums_of_partials(self):
        self.assert_right(ADD, (3,), "P(sum),P(sum)->P(sum)")
        self.assert_right(ADD, (3,), "P(avg),R->P(avg)")
        self.assert_right(ADD, (3,), "P(min),R->P(min)")
        self.assert_wrong(ADD, (3,), "P(sum),R->P(sum)", because="off by")
        self.assert_wrong(ADD, (3,), "P(max),P(max)->P(max)", because="off by")

    def test_means_of_unequal_shards(self):
        self.assert_wrong(MEAN, (2,), "S(0)->P(avg)", because="off by")
        self.assert_right(MEAN, (5,), "S(0)->P(avg)")

    def test_strided_shards_and_orders(self):
        ranks = {"local_args": {"size": [[12], [12]]}}
        self.assert_right(VIEW, (2,), "S(1)->SS(0,4)", **ranks)
        self.assert_wrong(VIEW, (2,), "S(1)->S(0)", because="off by", **ranks)
        self.assert_wrong(VIEW, (2,), "S(1)->SS(0,2)", because="off by", **ranks)
        ranks = {"local_args": {"size": [[6]] * 4}}
        text = "[S(0),S(0)]->[S(0),S(0)]"
        self.assert_right(VIEW, (2, 2), text, **ranks)
        text = "[S(0),S(0)]->[S(0)@1,S(0)@0]"
        self.assert_wrong(VIEW, (2, 2), text, because="off by", **ranks)
        # Without the argument of its own, a rank cannot run the view.
        self.assert_wrong(VIEW, (2,), "S(0)->S(0)", because="RuntimeError")

    def test_random_draws(self):
        self.assert_right(DROPOUT, (3,), "S(0)->S(0),S(0)")
        self.assert_wrong(DROPOUT, (3,), "P(sum)->P(sum),R", because="random")
        self.assert_wrong(DROPOUT, (3,), "S(0)->S(0),S(1)", because="has shape")

    def test_collectives_inside(self):
        text, right = "S(1)->S(1)", softmax_program("sum")
        self.assert_right(SOFTMAX, (2,), text, local_program=right)
        wrong = softmax_program("max")
        self.assert_wrong(SOFTMAX, (2,), text, because="off by", local_program=wrong)
        self.assert_wrong(SOFTMAX, (2,), text, because="off by")

    def test_what_is_written_lies_as_the_result(self):
        args = {"self": Operand(0), "mat2": Operand(1), "out": Operand(2)}
        shapes = [meta(5, 6), meta(6, 4), meta(5, 4)]
        call = call_of("aten.mm.out", args, shapes, [meta(5, 4)])
        self.assert_right(call, (2,), "S(0),R,S(0)->S(0)")
        self.assert_wrong(call, (2,), "S(0),R,R->S(0)", because="does not lie")

    def test_what_is_written_and_not_returned_is_compared(self):
        args = {"self": (Operand(0), Operand(1))}
        call = call_of("aten._foreach_exp_.default", args, [meta(5), meta(4, 3)], [])
        self.assert_right(call, (2,), "S(0),R->")
        self.assert_wrong(call, (2,), "P(sum),R->", because="off by")


class OwnDtypes(unittest.TestCase):
    def why_wrong(self, call, text, *inputs):
        found = prove(call, [((2,), strategy(text))], 0, list(inputs))
        return found[0][2] if found else None

    def test_bytes_wrap_round(self):
        whole = meta(40, dtype="u8")
        values = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).repeat(10)
        negative = call_of("aten.neg.default", {"self": Operand(0)}, [whole], [whole])
        self.assertIsNone(self.why_wrong(negative, "S(0)->S(0)", values))
        self.assertIsNone(self.why_wrong(negative, "P(sum)->P(sum)", values))
        self.assertIn("differ", self.why_wrong(negative, "P(max)->P(min)", values))
        args = {"self": Operand(0), "other": 2.5}
        scaled = call_of("aten.mul.Scalar", args, [whole], [meta(40)])
        self.assertIn("off by", self.why_wrong(scaled, "P(sum)->P(sum)", values))

    def test_casts_are_not_linear(self):
        args = {"self": Operand(0), "src": Operand(1)}
        shapes = [meta(40, dtype="i64"), meta(40, dtype="f64")]
        call = call_of("aten.copy.default", args, shapes, shapes[:1])
        inputs = torch.zeros(40, dtype=torch.int64), torch.arange(40.0).double()
        self.assertIsNone(self.why_wrong(call, "S(0),S(0)->S(0)", *inputs))
        self.assertIn("differ", self.why_wrong(call, "R,P(sum)->P(sum)", *inputs))
        self.assertIn(
            "differ", self.why_wrong(call, "R,P(product)->P(product)", *inputs)
        )


class Partials(unittest.TestCase):
    def test_terms_reduce_to_the_value(self):
        generator = torch.Generator().manual_seed(0)
        floats = torch.randn(3, 4, dtype=torch.float64)
        whole = torch.randint(-9, 10, (3, 4))
        truths = torch.rand(3, 4) < 0.5
        cases = [
            (value, (kind,), (3,))
            for value in (floats, whole, truths)
            for kind in ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")
            if not (value is floats and kind[0] == "b")
            and not (value is not floats and kind == "avg")
        ]
        cases.append((floats, ("avg", "sum"), (2, 3)))
        cases.append((floats, ("max", "max"), (2, 3)))
        for value, kinds, sizes in cases:
            with self.subTest(kinds=kinds, dtype=value.dtype):
                terms = partials.split(value, kinds, sizes, generator)
                self.assertFalse(all(torch.equal(terms[0], t) for t in terms))
                total = partials.reduce(terms, kinds, sizes)
                torch.testing.assert_close(total, value)

    def test_one_term_alone_is_not_a_number(self):
        value = torch.tensor([torch.nan, 1.0])
        for kind in ("max", "min"):
            terms = partials.split(value, (kind,), (3,), torch.Generator())
            self.assertEqual(sum(int(term[0].isnan()) for term in terms), 1)
            self.assertTrue(partials.reduce(terms, (kind,), (3,))[0].isnan())


class Layouts(unittest.TestCase):
    def test_regions(self):
        def held(layout, mesh, shape):
            return list(layouts.regions(layout, mesh, shape))

        self.assertEqual(
            held(("S(0)",), (3,), (4, 2)),
            [(((0, 2),), None), (((2, 4),), None), ((), None)],
        )
        self.assertEqual(
            held(("SS(0,2)",), (2,), (8,)),
            [(((0, 2), (4, 6)),), (((2, 4), (6, 8)),)],
        )
        by_order = held(("S(0)@1", "S(0)@0"), (2, 2), (8,))
        self.assertEqual(by_order[1], (((4, 6),),))

    def test_shards_keep_the_order_of_strides(self):
        tensor = torch.arange(24.0).view(2, 3, 4).transpose(0, 2)
        shard = layouts.take(tensor, (None, ((1, 3),), None))
        self.assertTrue(torch.equal(shard, tensor[:, 1:3]))
        self.assertEqual(shard.stride(), (1, 4, 8))
        spread = torch.arange(3.0).view(1, 3).expand(4, 3)
        shard = layouts.take(spread, (((0, 2),), ((0, 1), (2, 3))))
        self.assertEqual(shard.tolist(), [[0, 2], [0, 2]])
        self.assertEqual(shard.stride(), (0, 1))


class AttentionDropout(unittest.TestCase):
    def test_gradients_agree_with_autograd(self):
        generator = torch.Generator().manual_seed(1)
        shape = (2, 3, 4, 5)
        tensors = [
            torch.randn(shape, generator=generator, dtype=torch.float64)
            for _ in range(3)
        ]
        kept = torch.rand((2, 3, 4, 4), generator=generator) < 0.7
        weight = torch.randn(shape, generator=generator, dtype=torch.float64)

        def reference(q, k, v):
            weights = (q @ k.mT * 0.5).softmax(-1) * kept / 0.7
            return weights @ v

        def fused(q, k, v):
            return torch.ops.aten._scaled_dot_product_efficient_attention(
                q, k, v, None, True, 0.3, scale=0.5
            )[0]

        gradients = []
        for attention in (reference, fused):
            leaves = [t.clone().requires_grad_() for t in tensors]
            with cuda_attention_kernels.dropout(kept):
                output = attention(*leaves)
                output.backward(weight)
            gradients.append([output, *(leaf.grad for leaf in leaves)])
        for expected, found in zip(*gradients, strict=True):
            torch.testing.assert_close(found, expected)


if __name__ == "__main__":
    unittest.main()
