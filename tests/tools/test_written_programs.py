"""Tests `shardprop verify --rank-programs` on programs that somebody else wrote, and its
errors."""

import json

import command_line
import exported_text as text
from command_line import shardprop
from exported_text import Call, Input, Tensor
from rank_folder import Folder


def single():
    """Two matmuls with a relu between them, on one device."""
    return text.program(
        [Input("x", (8, 4)), Input("w", (4, 12), "w"), Input("v", (12, 8), "v")],
        [
            Call("mm", "aten.mm.default", (8, 12), self=Tensor("x"), mat2=Tensor("w")),
            Call("relu", "aten.relu.default", (8, 12), self=Tensor("mm")),
            Call("mm_1", "aten.mm.default", (8, 8), self=Tensor("relu"),
                 mat2=Tensor("v")),
            Call("cos", "aten.cos.default", (8, 8), self=Tensor("mm_1")),
        ],
        ["cos"])


LIBRARY = "_c10d_functional"


class Rank:
    """A program of one of two ranks that shard both weights: `w` by columns and `v` by
    rows. Its parts can be replaced."""

    def __init__(self, reduce=None, after=(), rows=8):
        self.reduce = reduce or [
            Call("sum", f"{LIBRARY}.all_reduce.default", (8, 8), input=Tensor("mm_1"),
                 reduce_op="sum", group_name="tp"),
            Call("wait", f"{LIBRARY}.wait_tensor.default", (8, 8), tensor=Tensor("sum")),
        ]
        self.after, self.rows = list(after), rows

    def text(self):
        return text.program(
            [Input("x", (8, 4)), Input("w", (4, 6), "w"), Input("v", (6, 8), "v")],
            [
                Call("mm", "aten.mm.default", (8, 6), self=Tensor("x"),
                     mat2=Tensor("w")),
                Call("relu", "aten.relu.default", (8, 6), self=Tensor("mm")),
                Call("mm_1", "aten.mm.default", (8, 8), self=Tensor("relu"),
                     mat2=Tensor("v")),
                *self.reduce,
                Call("cos", "aten.cos.default", (self.rows, 8),
                     self=Tensor(self.reduce[-1].name)),
                *self.after,
            ],
            ["cos"])


class Written(Folder):
    """Programs that somebody else wrote."""

    def setUp(self):
        super().setUp()
        self.graph = self.file("single.json", json.dumps(single()))
        self.out = self.folder / "programs"
        self.out.mkdir()

    def write(self, ranks, **changes):
        for rank, program in enumerate(ranks):
            (self.out / f"rank{rank}.json").write_text(json.dumps(program.text()))
        shardings = {
            "schema": "shardprop.shardings/1",
            "inputs": [{"name": "x", "placements": ["R"]},
                       {"name": "w", "placements": ["S(1)"]},
                       {"name": "v", "placements": ["S(0)"]}],
            **changes,
        }
        (self.out / "shardings.json").write_text(json.dumps(shardings))

    def found(self, ranks, status=1, **changes):
        self.write(ranks, **changes)
        return self.report(self.graph, self.out, status, "--mesh", "tp=2")

    def error(self, status, *words, mesh="tp=2"):
        done = self.verify(self.graph, self.out, "--mesh", mesh)
        if status == 1:
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, command_line.ERROR)
            for word in words:
                self.assertIn(word, done.stderr)
        else:
            self.refused(done, status, *words)

    def test_right(self):
        found = self.found([Rank()] * 2, 0)
        self.assertEqual(found["outputs"][0]["placements"], ["R"])
        self.assertIsNone(found["outputs"][0]["stated_placements"])
        self.assertEqual(found["collectives"]["all_reduce"], 1)

    def test_groups_by_their_ranks(self):
        """The form of torch.distributed._functional_collectives before torch 2.3."""
        reduce = [
            Call("sum", "c10d_functional.all_reduce.default", (8, 8),
                 self=Tensor("mm_1"), reduceOp="SUM", tag="", ranks=[0, 1],
                 group_size=2),
            Call("wait", "c10d_functional.wait_tensor.default", (8, 8),
                 self=Tensor("sum")),
        ]
        self.found([Rank(reduce)] * 2, 0)

    def test_an_inferred_shard(self):
        """A reduce-scatter leaves rows, which no layout states."""
        reduce = [
            Call("part", f"{LIBRARY}.reduce_scatter_tensor.default", (4, 8),
                 input=Tensor("mm_1"), reduce_op="sum", group_size=2, group_name="tp"),
            Call("wait", f"{LIBRARY}.wait_tensor.default", (4, 8),
                 tensor=Tensor("part")),
        ]
        found = self.found([Rank(reduce, rows=4)] * 2, 0)
        self.assertEqual(found["outputs"][0]["placements"], ["S(0)"])

    def test_missing_all_reduce(self):
        skip = [Call("wait", "aten.alias.default", (8, 8), self=Tensor("mm_1"))]
        found = self.found([Rank(skip)] * 2)["mismatch"]
        self.assertEqual((found["value"], found["source"]), ("cos", "model.py:5"))
        self.assertIsNone(found["placements"])
        self.assertEqual(found["reads"], [{"value": "mm_1", "placements": ["P(sum)"]}])
        self.assertIn("`mm_1`, on which it depends, has the layout P(sum)",
                      found["sentences"][-1])

    def test_ranks_that_wait_for_each_other(self):
        """Rank 0 ends without the second collective."""
        again = [
            Call("sum_2", f"{LIBRARY}.all_reduce.default", (8, 8), input=Tensor("cos"),
                 reduce_op="sum", group_name="tp")]
        self.write([Rank(), Rank(after=again)])
        self.error(1, "SP0911", "the ranks wait for each other",
                   "rank 0: its program has ended", "rank 1: waits for all_reduce(sum)",
                   "node `sum_2`")

    def test_ranks_that_call_different_collectives(self):
        other = Rank()
        other.reduce[0].arguments["reduce_op"] = "max"
        self.write([Rank(), other])
        self.error(1, "SP0913", "rank 0: all_reduce(sum) of f32[8,8]",
                   "rank 1: all_reduce(max)")

    def test_an_unknown_collective(self):
        strange = Rank()
        strange.reduce[0].op = f"{LIBRARY}.all_reduce_by_mail.default"
        self.write([strange] * 2)
        self.error(3, "SP0508", "all_reduce_by_mail", "rank0.json: sum")

    def test_an_unknown_reduction(self):
        strange = Rank()
        strange.reduce[0].arguments["reduce_op"] = "median"
        self.write([strange] * 2)
        self.error(2, "SP0906", "median")

    def test_groups_that_are_not_on_the_mesh(self):
        named = Rank()
        named.reduce[0].arguments["group_name"] = "7"
        ranks = [Rank(), Rank(), Rank(), named]
        self.write(ranks, inputs=[
            {"name": "x", "placements": ["R", "R"]},
            {"name": "w", "placements": ["R", "S(1)"]},
            {"name": "v", "placements": ["R", "S(0)"]}])
        self.error(2, "SP0901", "`7` of a collective is not on the mesh",
                   mesh="dp=2,tp=2")
        self.write([Rank()] * 2, groups=[{"name": "tp", "ranks": [[0, 4]]}])
        (self.out / "rank2.json").unlink()
        (self.out / "rank3.json").unlink()
        self.error(2, "SP0901", "has rank 4, which is not on the mesh")
        self.write([Rank()] * 2, groups=[{"name": "tp", "ranks": [[0]]}])
        self.error(2, "SP0902", "rank 1 calls a collective of the group `tp`")

    def test_files_that_are_missing(self):
        self.error(3, "SP0401", "shardings.json")
        self.write([])
        self.error(3, "SP0401", "the folder has no program")
        self.write([Rank()])
        self.error(2, "SP0001", "the number of programs is not the number of ranks",
                   "programs: 1", "tp=2: 2")
        self.write([Rank()] * 3)
        self.error(2, "SP0001", "programs: 3")

    def test_layouts_that_are_missing_or_do_not_fit(self):
        x = {"name": "x", "placements": ["R"]}
        w = {"name": "w", "placements": ["S(1)"]}
        self.write([Rank()] * 2, inputs=[x, w])
        self.error(3, "SP0410", "no layout of the input `v`")
        self.write([Rank()] * 2, inputs=[x, w, {"name": "v", "placements": ["R"]}])
        self.error(2, "SP0950", "rank 0 takes `v` as f32[6,8]", "gives f32[12,8]")
        self.write([Rank()] * 2, inputs=[x, w, {"name": "v", "placements": ["P(sum)"]}])
        self.error(2, "SP0001", "the input `v` has terms")
        self.write([Rank()] * 2, inputs=[x, w, {"name": "v", "placements": ["R", "R"]}])
        self.error(2, "SP0302", "`v` has 2 placements")
        stranger = {"name": "u", "argument": "v", "placements": ["S(0)"]}
        self.write([Rank()] * 2, inputs=[x, w, stranger])
        self.error(3, "SP0512", "has no input `u`")

    def test_outputs_that_do_not_fit(self):
        self.write([Rank()] * 2, outputs=[{"name": "cos"}, {"name": "mm"}])
        self.error(2, "SP0001", "returns 1 tensors", "has 2 outputs")
        self.write([Rank()] * 2, outputs=[{"name": "tan"}])
        self.error(3, "SP0512", "no value `tan`")
        found = self.found([Rank()] * 2, outputs=[{"name": "cos", "placements": ["S(0)"]}])
        self.assertEqual(found["mismatch"]["placements"], ["R"])
        self.assertIn("the stated layout S(0) gives", found["mismatch"]["sentences"][0])

    def test_meshes_and_options_that_do_not_fit(self):
        self.write([Rank()] * 2, mesh={"dims": [{"name": "tp", "size": 2}]})
        self.answered(self.verify(self.graph, self.out))
        self.error(2, "SP0001", "the programs are for another mesh", mesh="dp=2")
        self.write([Rank()] * 2)
        self.refused(self.verify(self.graph, self.out), 2, "SP0001",
                     "the mesh is not known")
        for option in (["--plan", "x"], ["--trace"], ["--backend", "mpi"],
                       ["--pin", "x=R"]):
            done = self.verify(self.graph, self.out, "--mesh", "tp=2", *option)
            self.refused(done, 2, "SP0001", option[0])

    def test_meshes_that_are_too_large_to_simulate(self):
        dims = [{"name": "tp", "size": 1 << 24}]
        self.write([Rank()] * 2, mesh={"dims": dims})
        self.refused(self.verify(self.graph, self.out), 2, "SP0001", "16777216 ranks",
                     "at most 30000", "shardings.json")
        dims[0]["size"] = 2
        self.write([Rank()] * 2, mesh={"dims": dims, "ranks": [0, 30000]})
        self.refused(self.verify(self.graph, self.out), 2, "SP0001", "rank 30000",
                     "below 30000", "shardings.json")

    def test_programs_that_draw(self):
        draw = Rank(after=[Call("drop", "aten.rand_like.default", (8, 8),
                                self=Tensor("cos"))])
        self.write([draw] * 2)
        self.error(4, "SP1001", "draws random numbers on each rank")


if __name__ == "__main__":
    command_line.main()
