"""Tests `shardprop verify --rank-programs`: programs of `emit` are right, and each
planted mistake is named at its value."""

import json
import os

import command_line
import exported_text as text
from command_line import MLP, TINY
from exported_text import Call, Gradient, Input, Tensor
from rank_folder import Folder

FULL = os.environ.get("SHARDPROP_FULL") == "1"
SLICE = [("mlp_dynamic", "tp=2"), ("llama3_infer", "dp=2,tp=2"),
         ("gpt2_train", "dp=2,tp=2"), ("mixtral_infer", "tp=2"), ("vit_infer", "tp=3")]
EVERY = [
    (path.name.split(".")[0], mesh)
    for path in sorted(TINY.glob("*.json.gz"))
    for mesh in ("tp=2", "dp=2,tp=2", "tp=3")
]
ALL_REDUCE = "torch.ops._c10d_functional.all_reduce.default"
ALL_TO_ALL = "torch.ops._c10d_functional.all_to_all_single.default"


def first(program, target, last=False):
    found = [one for one in text.nodes_of(program) if one["target"] == target]
    return found[-1 if last else 0]


def waited(program, started):
    """The wait for a collective."""
    return next(one for one in text.nodes_of(program)
                if "wait_tensor" in one["target"]
                and text.input_of(one, "tensor") == text.output_of(started))


class Emitted(Folder):
    """Programs of `emit`."""

    def test_right(self):
        for graph, mesh in EVERY if FULL else SLICE:
            with self.subTest(graph=graph, mesh=mesh):
                self.setUp()
                path = TINY / f"{graph}.json.gz"
                found = self.report(path, self.emit(path, mesh), 0)
                self.assertEqual(found["wrong_values"], [])
                self.assertGreater(found["values"], len(found["outputs"]))
                for output in found["outputs"]:
                    self.assertTrue(output["ok"])
                    self.assertEqual(output["placements"],
                                     output["stated_placements"])

    def test_gradients_with_finer_shards_than_parameters(self):
        path = TINY / "llama3_train.json.gz"
        out = self.emit(path, "dp=2", "--optimizer", "none")
        self.report(path, out, 0)

    def tensor_parallel(self):
        """The MLP, whose second matmul sums over both ranks."""
        return self.emit(MLP, "tp=2", "--pin", "up.weight=S(0)", "--pin",
                         "down.weight=S(1)", "--pin", "x=R", "--pin", "relu=S(1)",
                         "--pin", "view_1=R")

    def test_text_of_a_right_program(self):
        done = self.verify(MLP, self.tensor_parallel())
        self.answered(done)
        self.assertIn("programs of 2 ranks on tp=2\nall right: 1 output, ", done.stdout)
        self.assertIn("all_reduce 1", done.stdout)

    def test_missing_all_reduce(self):
        def edit(program):
            started = first(program, ALL_REDUCE)
            text.use_instead(program, text.output_of(waited(program, started)),
                             text.input_of(started))

        out = self.tensor_parallel()
        self.change(out, edit)
        found = self.report(MLP, out)["mismatch"]
        self.assertEqual(found["value"], "view_1")
        self.assertEqual(found["stated_placements"], ["R"])
        self.assertEqual(found["placements"], ["P(sum)"])
        self.assertIn("A sum over tp is missing.", found["sentences"])
        done = self.verify(MLP, out)
        self.assertIn("first wrong value: `view_1`   aten.view.default\n", done.stdout)
        self.assertIn("It is right in the layout P(sum): each rank holds a term of a sum "
                      "over tp=2.", done.stdout)

    def test_double_reduction(self):
        def edit(program):
            done = waited(program, first(program, ALL_REDUCE))
            text.insert_after(program, done, Call(
                "again", "_c10d_functional.all_reduce.default", (),
                input=Tensor(text.output_of(done)), reduce_op="sum",
                group_name="shardprop_tp"))

        out = self.tensor_parallel()
        self.change(out, edit)
        found = self.report(MLP, out)["mismatch"]
        self.assertIn(found["value"], ("addmm_1", "view_1"))
        self.assertEqual(found["placements"], ["R"])
        self.assertAlmostEqual(found["factor"], 2)
        self.assertIn("It is 2 times the value in the layout R", found["sentences"][0])

    def test_wrong_scale(self):
        def edit(program):
            relu = first(program, "torch.ops.aten.relu.default")
            text.insert_after(program, relu, Call(
                "scaled", "aten.mul.Scalar", (), self=Tensor(text.output_of(relu)),
                other=0.5))

        out = self.tensor_parallel()
        self.change(out, edit)
        found = self.report(MLP, out)["mismatch"]
        self.assertEqual((found["value"], found["op"]), ("relu", "aten.relu.default"))
        self.assertEqual(found["placements"], ["S(1)"])
        self.assertAlmostEqual(found["factor"], 0.5)
        self.assertEqual(found["reads"], [{"value": "addmm", "placements": ["S(1)"]}])

    def test_wrong_dim_of_a_gather(self):
        """Columns are joined as if they were rows."""
        def edit(program):
            exchange = waited(program, first(program, ALL_TO_ALL, last=True))
            joined = first(program, "torch.ops.aten.permute.default", last=True)
            self.assertIn("copy", joined["metadata"]["custom"])
            parts = text.nodes_of(program)[text.nodes_of(program).index(joined) - 1]
            self.assertEqual(text.input_of(parts, "self"), text.output_of(exchange))
            text.use_instead(program, text.output_of(joined), text.output_of(parts))

        out = self.emit(MLP, "tp=2", "--pin", "down.weight=S(0)", "--pin",
                        "addmm_1=S(1)", "--pin", "x=R", "--pin", "view_1=R")
        self.change(out, edit)
        found = self.report(MLP, out)["mismatch"]
        self.assertEqual(found["value"], "view_1")
        self.assertIsNone(found["placements"])
        self.assertIn("No layout makes it right.", found["sentences"][0])

    def test_swapped_shard_order(self):
        def edit(read):
            for group in read["groups"]:
                group["ranks"] = [ranks[::-1] for ranks in group["ranks"]]

        out = self.emit(MLP, "tp=2", "--pin", "x=S(0)", "--pin", "relu=S(0)", "--pin",
                        "view_1=R")
        self.shardings(out, edit)
        found = self.report(MLP, out)["mismatch"]
        self.assertEqual(found["value"], "view_1")
        self.assertIsNone(found["placements"])
        self.assertEqual(found["sentences"],
                         ["The shards of dim 0 over tp=2 are in the order 1,0."])


def training():
    """A matmul whose loss is a sum, with the gradient of its weight."""
    return text.program(
        [Input("w", (4, 6), "fc.weight"), Input("x", (8, 4))],
        [
            Call("mm", "aten.mm.default", (8, 6), self=Tensor("x"), mat2=Tensor("w")),
            Call("relu", "aten.relu.default", (8, 6), self=Tensor("mm")),
            Call("sum_1", "aten.sum.default", (), self=Tensor("relu")),
            Call("sign", "aten.sign.default", (8, 6), self=Tensor("relu")),
            Call("permute", "aten.permute.default", (4, 8), self=Tensor("x"),
                 dims=[1, 0]),
            Call("grad", "aten.mm.default", (4, 6), self=Tensor("permute"),
                 mat2=Tensor("sign")),
        ],
        ["sum_1", Gradient("grad", "fc.weight")])


class Gradients(Folder):
    def test_missing_reduction_of_a_gradient(self):
        graph = self.file("training.json", json.dumps(training()))
        out = self.emit(graph, "dp=2", "--optimizer", "none", "--pin", "x=S(0)", "--pin",
                        "fc.weight=R")
        self.report(graph, out, 0)

        def edit(program):
            started = first(program, ALL_REDUCE, last=True)
            text.use_instead(program, text.output_of(waited(program, started)),
                             text.input_of(started))

        self.change(out, edit)
        found = self.report(graph, out)
        self.assertEqual(found["mismatch"]["value"], "grad")
        self.assertEqual(found["mismatch"]["placements"], ["P(sum)"])
        self.assertIn("A sum over dp is missing.", found["mismatch"]["sentences"])
        self.assertEqual(found["wrong_values"], ["grad"])


if __name__ == "__main__":
    command_line.main()
