"""A saved plan is judged before the command reports it: its choices must be
possible, and its cost is recomputed.

  test_saved_plans.py BINARY
"""

import copy
import gzip
import json

import command_line
import made_graphs
from command_line import FULL, MLP, ROOT, TINY, Case, complaints, shardprop

# Costs that differ much by layout, so that plans are full of copies.
DEAR = ROOT / "examples/topologies/dear-compute.toml"
# The option ends the search early, so that its plan is full of copies.
LITTLE_WORK = ("--topology", DEAR, "--gap", "0", "--work-limit", "100000", "--threads", "1")

GENUINE = [
    ("mlp_dynamic", "dp=2,tp=2", ()),
    ("mlp_dynamic", "2,2,2,2", ()),
    ("block_composite", "2,2,2", ()),
    ("gpt2_train_cuda", "2,2", ("--optimizer", "adamw")),
    ("llama3_train_cuda", "2,2", ("--optimizer", "adamw", "--accumulate", "4")),
    ("llama3_train", "2,4", ("--memory", "400KiB", "--time-limit", "10")),
    ("llama3_infer", "dp=2,tp=2", ("--pin", "*.weight=S(0),R")),
    ("mixtral_infer", "2,2", ()),
    ("t5_train", "2", ("--optimizer", "sgd")),
    ("vit_infer", "4,2", ()),
    ("vit_infer", "2,2", ("--blocks", "5")),
    ("gpt2_train", "8,2", LITTLE_WORK),
    ("gpt2_train", "3,2", LITTLE_WORK),
    ("gpt2_train_cuda", "8,2", LITTLE_WORK),
    ("gpt2_train_cuda", "3,2", LITTLE_WORK),
    # A view could be read in a strided layout that its node was not offered.
    ("llama3_infer", "dp=16,tp=8", LITTLE_WORK),
    ("llama3_train", "8", LITTLE_WORK),
    ("llama3_train_cuda", "2,4", LITTLE_WORK),
    ("mixtral_infer", "4,4", LITTLE_WORK),
    ("t5_train", "4,4", LITTLE_WORK),
    ("t5_train", "3,2", LITTLE_WORK),
    ("t5_train_cuda", "3,2", LITTLE_WORK),
    # Splits of fused projections shard their pieces.
    ("gpt2_train", "dp=2,tp=3", (*LITTLE_WORK, "--recipe", "megatron")),
    # Found in a part of the named space, except for pinned values.
    ("t5_train", "3,2",
     ("--gap", "0", "--work-limit", "100000", "--threads", "1", "--pin", "input_ids=S(1),S(0)")),
]
# Their operators shard factors in strided pieces, or not in mesh order.
STRIDED = [
    ("llama3_train", "3,2", "input_ids=S(1),S(0)"),
    ("llama3_infer", "2,2", "input_ids=S(0)@1,S(0)@0"),
    ("llama3_train_cuda", "2,3", "input_ids=R,S(1)"),
    ("gpt2_train", "dp=2,tp=6", "input_ids=S(0),S(1)"),
    ("t5_train", "3", "input_ids=S(1)"),
    ("mixtral_infer", "8,3", "input_ids=R,S(1)"),
]
if FULL:  # The set-up of four mesh dims takes 30 s.
    # A copy has another copy as its source, through another view of the same
    # buffer.
    GENUINE.append(("llama3_train", "2,2,2,2",
                    ("--topology", DEAR, "--gap", "0", "--work-limit", "1000")))

# Found in a part of the named space, whose copies move over merged mesh dims.
HURRIED = [
    ("block_composite", "2,2,2", "0.2"),
    ("gpt2_train_cuda", "2,2,2", "0.3"),
    ("gpt2_train_cuda", "2,2,2,2", "1"),
    ("llama3_train", "2,2,2", "0.3"),
    ("llama3_train", "2,2,2", "0.6"),
    ("llama3_train", "2,2,2,2", "1"),
    ("vit_infer", "2,2,2,2,2", "1"),
]


def explained(graph, plan, *more):
    return shardprop("explain", graph, "--plan", plan, *more)


class Genuine(Case):
    def check(self, graph, mesh, more):
        path = TINY / f"{graph}.json.gz"
        file = self.folder / "plan.json"
        made = shardprop("explain", path, "--mesh", mesh, *more, "--format", "json", "-o", file)
        if made.returncode == 1:  # nothing found in time
            return
        self.assertEqual(made.returncode, 0, made.stderr)
        done = explained(path, file)
        self.assertNotIn("in the file", done.stderr)
        self.assertNotIn("warning: $", done.stderr)
        self.assertEqual(complaints(done, (0,)), [], done.stderr)
        self.assertIn("as the file says", done.stdout)
        again = json.loads(explained(path, file, "--format", "json").stdout)
        self.assertEqual(again.pop("proof"), "as the file says")
        self.assertEqual(again, json.loads(file.read_text()))

    def test_plans_are_what_they_say(self):
        for graph, mesh, more in GENUINE:
            with self.subTest(graph=graph, mesh=mesh):
                self.check(graph, mesh, more)

    def test_plans_with_strided_factors_are_what_they_say(self):
        for graph, mesh, pin in STRIDED:
            with self.subTest(graph=graph, mesh=mesh):
                self.check(graph, mesh, (*LITTLE_WORK, "--pin", pin))
                plan = json.loads((self.folder / "plan.json").read_text())
                self.assertTrue(any("factor_shardings" in node for node in plan["nodes"]))

    def test_plans_of_smaller_spaces_are_what_they_say(self):
        for graph, mesh, seconds in HURRIED if FULL else HURRIED[::2]:
            with self.subTest(graph=graph, mesh=mesh):
                self.check(graph, mesh, ("--topology", DEAR, "--gap", "0", "--time-limit", seconds))


class Like(Case):
    """--like: parameters and buffers as a saved plan has them."""

    ON = ("--mesh", "dp=2,tp=2", "--work-limit", "10000000", "--format", "json")

    def test_inference_is_laid_out_as_training(self):
        train = self.folder / "train.json"
        self.answered(shardprop("explain", TINY / "llama3_train.json.gz", *self.ON,
                                "--pin", "*.up_proj.weight=S(1),R", "-o", train))
        done = shardprop("explain", TINY / "llama3_infer.json.gz", *self.ON, "--like", train)
        self.answered(done)
        kept = [
            {name: value["placements"] for name, value in plan["values"].items()
             if value["role"] == "parameter"}
            for plan in (json.loads(train.read_text()), json.loads(done.stdout))
        ]
        self.assertEqual(kept[0], kept[1])
        # The plan with these pins is a plan that can be read again.
        file = self.file("infer.json", done.stdout)
        self.answered(explained(TINY / "llama3_infer.json.gz", file))

    def test_a_plan_of_another_mesh_is_refused(self):
        train = self.folder / "train.json"
        self.answered(shardprop("explain", TINY / "llama3_train.json.gz", *self.ON, "-o", train))
        done = shardprop("explain", TINY / "llama3_infer.json.gz", "--mesh", "4", "--like", train)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("of another mesh", done.stderr)


class Start(Case):
    """--start-from: a search begins with a saved plan."""

    GRAPH = TINY / "llama3_train.json.gz"
    ON = ("--mesh", "dp=2,tp=2", "--work-limit", "100000000")

    def planned(self, graph, *more):
        done = shardprop("explain", graph, *self.ON, *more, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_plan_is_the_start_of_another_one(self):
        file = self.file("start.json", json.dumps(self.planned(self.GRAPH)))
        for graph in (self.GRAPH, TINY / "llama3_train_cuda.json.gz"):
            with self.subTest(graph.name):
                plan = self.planned(graph, "--start-from", file, "--pin", "lm_head.weight=R,R")
                starts = [n for n in plan["notes"] if n["code"] == "earlier_plan"]
                self.assertEqual([start["led_to_plan"] for start in starts], [True])
                self.assertLessEqual(plan["gap"], 0.01)

    def test_a_file_that_is_no_plan(self):
        file = self.file("start.json", "{}")
        done = shardprop("explain", self.GRAPH, *self.ON, "--start-from", file)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"--start-from {file}", done.stderr)

    def test_an_eager_plan_is_taken_unless_another_execution_is_asked(self):
        file = self.folder / "eager.json"
        made = shardprop("explain", self.GRAPH, "--mesh", "2,2", "--execution", "eager",
                         "--format", "json", "-o", file)
        self.assertEqual(made.returncode, 0, made.stderr)
        for command in ("explain", "verify"):
            done = shardprop(command, self.GRAPH, "--plan", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = shardprop(command, self.GRAPH, "--plan", file, "--execution", "compiled")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("the plan of --plan is for eager execution", done.stderr)

    def test_options_that_are_no_values(self):
        plan = self.planned(self.GRAPH)
        plan["options"]["execution"] = "of memory"
        file = self.file("plan.json", json.dumps(plan))
        for command in ("explain", "verify"):
            done = shardprop(command, self.GRAPH, "--plan", file)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("$.options.execution", done.stderr)

    def test_a_start_and_a_plan(self):
        file = self.file("start.json", json.dumps(self.planned(self.GRAPH)))
        done = shardprop("explain", self.GRAPH, "--plan", file, "--start-from", file)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--start-from", done.stderr)


class Tampered(Case):
    """A training graph whose plan has copies, with one thing changed."""

    @classmethod
    def setUpClass(cls):
        cls.graph = TINY / "gpt2_train.json.gz"
        done = shardprop(
            "explain",
            cls.graph,
            "--mesh",
            "dp=2,tp=2",
            "--pin",
            "*weight=S(0),R",
            "--format",
            "json",
            "--time-limit",
            "10",
        )
        cls.plan = json.loads(done.stdout)
        assert cls.plan["copies"], done.stderr

    def judged(self, plan):
        return explained(self.graph, self.file("plan.json", json.dumps(plan)))

    def tampered(self):
        return copy.deepcopy(self.plan)

    def test_a_placement(self):
        plan = self.tampered()
        node = next(n for n in plan["nodes"] if n["op"].startswith("aten.mm"))
        now = node["outputs"][0]["placements"]
        node["outputs"][0]["placements"] = ["S(0)", "S(0)"] if now[1] != "S(0)" else ["R", "R"]
        self.refused(self.judged(plan), 3, "SP0706", node["id"])

    def test_a_placement_of_a_parameter(self):
        plan = self.tampered()
        name, value = next(
            (n, v) for n, v in plan["values"].items() if v["placements"] == ["S(0)", "R"]
        )
        value["placements"] = ["R", "S(0)"]
        done = self.judged(plan)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_an_input_taken_otherwise(self):
        plan = self.tampered()
        node = next(n for n in plan["nodes"] if any("copy" in i for i in n["inputs"]))
        taken = next(i for i in node["inputs"] if "copy" in i)
        del taken["copy"]
        self.refused(self.judged(plan), 3, "SP0706")

    def test_a_copy_dropped(self):
        plan = self.tampered()
        last = plan["copies"].pop()["id"]
        for part in plan["nodes"] + plan["outputs"]:
            for taken in part.get("inputs", [part]):
                if taken.get("copy") == last:
                    del taken["copy"]
        steps = self.plan["copies"][last]["steps"]
        for step in steps:  # so that the totals agree
            plan["summary"]["collectives"][step["collective"]] -= 1
            plan["summary"]["bytes_per_rank"] -= step["bytes_per_rank"]
        done = self.judged(plan)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_copy_dropped_too_soon(self):
        plan = self.tampered()
        for entry in plan["copies"]:
            entry["freed_at"] = entry["made_at"]
        done = self.judged(plan)
        self.assertIn(done.returncode, (1, 3), done.stdout)

    def test_another_operator(self):
        plan = self.tampered()
        plan["nodes"][3]["op"] = "aten.bogus.default"
        self.refused(self.judged(plan), 3, "SP0706", "nodes[3]")

    def test_another_shape(self):
        plan = self.tampered()
        plan["nodes"][5]["outputs"][0]["shape"] = [1, 1]
        done = self.judged(plan)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_bytes(self):
        plan = self.tampered()
        plan["memory"]["peak_bytes_per_rank"] = 1
        done = self.judged(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("warning: $.memory.peak_bytes_per_rank: 1 in the file", done.stderr)

    def test_bytes_of_a_step(self):
        plan = self.tampered()
        step = next(s for c in plan["copies"] for s in c["steps"] if s["bytes_per_rank"])
        plan["summary"]["bytes_per_rank"] += 1 - step["bytes_per_rank"]
        step["bytes_per_rank"] = 1
        done = self.judged(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(".bytes_per_rank: 1 in the file", done.stderr)

    def test_an_objective_lowered(self):
        plan = self.tampered()
        node = next(n for n in plan["nodes"] if n["compute_us"] >= 1)
        node["compute_us"] = round(node["compute_us"] - 1, 3)
        for key in ("objective_us", "lower_bound_us"):
            plan[key] = round(plan[key] - 1, 3)
        plan["summary"]["compute_us"] = round(plan["summary"]["compute_us"] - 1, 3)
        done = self.judged(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("warning: $.objective_us", done.stderr)
        self.assertNotIn("optimal", done.stdout.splitlines()[1])

    def test_totals_that_do_not_add_up(self):
        plan = self.tampered()
        plan["objective_us"] -= 1
        self.refused(self.judged(plan), 3, "SP0706")

    def test_a_status_set_to_optimal(self):
        plan = self.tampered()
        plan["lower_bound_us"] = 0.0
        plan["status"] = "optimal"
        done = self.judged(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("$.status: optimal in the file, is feasible", done.stderr)
        self.assertIn("feasible", done.stdout.splitlines()[1])

    def test_a_bound_above_the_cost(self):
        plan = self.tampered()
        plan["lower_bound_us"] = plan["objective_us"] + 1
        done = self.judged(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("$.lower_bound_us: more than the plan costs", done.stderr)

    def test_the_hash_of_another_graph(self):
        plan = self.tampered()
        plan["graph"]["hash"] = "0123456789abcdef"
        self.refused(self.judged(plan), 3, "SP0708")

    def test_more_memory_than_its_limit(self):
        for memory in ("1024", "none"):
            plan = self.tampered()
            plan["options"]["memory"] = memory
            done = self.judged(plan)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("$.memory.limit_bytes", done.stderr)
        plan["options"]["memory"] = "1024"
        plan["memory"]["limit_bytes"] = 1024
        done = self.judged(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(", and the limit is 1024", done.stderr)
        self.assertNotIn("optimal", done.stdout)
        self.assertIn("infeasible", done.stdout)
        file = self.file("plan.json", json.dumps(plan))
        judged = self.file(
            "judged.json", explained(self.graph, file, "--format", "json").stdout
        )
        told = json.loads(judged.read_text())
        self.assertEqual((told["status"], told["objective_us"]), ("infeasible", None))
        again = explained(self.graph, judged)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("infeasible: these cannot hold together; some may be unneeded, as the file says", again.stdout)
        for more in ([], ["--as", "tp-plan"]):
            out = self.folder / "out"
            done = shardprop("emit", self.graph, "--plan", file, *more, "-o", out)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("no plan to write: infeasible", done.stderr)
            self.assertFalse(out.exists())
        ran = shardprop("verify", self.graph, "--plan", file, "--format", "json")
        self.assertEqual(ran.returncode, 1, ran.stderr)
        report = json.loads(ran.stdout)
        self.assertFalse(report["ok"])
        self.assertIn("the plan's own limit is 1024", "\n".join(report["findings"]))

    def test_a_peak_that_is_forged_to_fit(self):
        plan = self.tampered()
        plan["options"]["memory"] = "1024"
        plan["memory"]["limit_bytes"] = 1024
        plan["memory"]["peak_bytes_per_rank"] = 1000
        file = self.file("plan.json", json.dumps(plan))
        out = self.folder / "out"
        for more in ([], ["--as", "tp-plan"]):
            done = shardprop("emit", self.graph, "--plan", file, *more, "-o", out)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(", and the limit is 1024", done.stderr)
            self.assertIn("no plan to write: infeasible", done.stderr)
            self.assertFalse(out.exists())
        ran = shardprop("verify", self.graph, "--plan", file)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("the plan's own limit is 1024", ran.stdout)

    def test_programs_come_with_the_figures_of_their_plan(self):
        plan = self.tampered()
        genuine = json.dumps(plan["memory"])
        plan["memory"]["peak_bytes_per_rank"] -= 1
        file = self.file("plan.json", json.dumps(plan))
        out = self.folder / "out"
        done = shardprop("emit", self.graph, "--plan", file, "-o", out)
        self.assertEqual(complaints(done, (0,)), [], done.stderr)
        self.assertIn("warning: $.memory.peak_bytes_per_rank", done.stderr)
        written = json.loads((out / "plan.json").read_text())
        self.assertEqual(json.dumps(written["memory"]), genuine)

    def test_the_name_of_another_topology(self):
        plan = self.tampered()
        plan["topology"] = "dgx-b200"
        self.refused(self.judged(plan), 3, "SP0706", "$.topology")

    def test_an_operator_that_is_said_to_be_known(self):
        program = made_graphs.build("relu", 2)
        program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mylib.f.default"
        graph = self.file("graph.json", json.dumps(program))
        file = self.folder / "plan.json"
        made = shardprop("explain", graph, "--mesh", "2", "--format", "json", "-o", file)
        self.assertEqual(complaints(made, (0,)), [], made.stderr)
        plan = json.loads(file.read_text())
        self.assertTrue(plan["unsupported"])
        plan["unsupported"] = []
        file.write_text(json.dumps(plan))
        out = self.folder / "out"
        for call in (["explain"], ["verify"], ["emit", "-o", out]):
            done = shardprop(call[0], graph, "--plan", file, "--strict", *call[1:])
            self.refused(done, 4, "SP", "runs replicated in this plan", "--plan")

    def test_a_proof_that_is_claimed(self):
        plan = self.tampered()
        plan["memory"]["peak_bytes_per_rank"] = 1
        plan["proof"] = "as the file says"
        self.assertEqual(self.judged(plan).returncode, 1)

    def test_the_one_of_the_reports(self):
        """Sharded over dims that are not there, weights as sums, 0 us, schema 2."""
        plan = json.loads(
            shardprop("explain", MLP, "--mesh", "dp=300,tp=2", "--format", "json").stdout
        )
        for node in plan["nodes"]:
            node["compute_us"] = 0.0
            for output in node["outputs"]:
                output["placements"] = ["S(0)", "S(0)"]
        plan["summary"]["compute_us"] = plan["objective_us"] = 0.0
        done = explained(MLP, self.file("plan.json", json.dumps(plan)))
        self.assertEqual(done.returncode, 3, done.stdout)


class Forms(Case):
    """Numbers in which the ranks differ, by rank and by mesh coordinate."""

    def test_both_are_read_and_say_the_same(self):
        path = TINY / "llama3_train.json.gz"
        files = {}
        for form in ("by-rank", "by-dim"):
            files[form] = self.folder / f"{form}.json"
            made = shardprop("explain", path, "--mesh", "dp=16,tp=8", *LITTLE_WORK,
                             "--format", "json", "--local-args", form, "-o", files[form])
            self.assertEqual(complaints(made, (0,)), [], made.stderr)
        by_rank, by_dim = (json.loads(file.read_text()) for file in files.values())
        differ = [node for node in by_dim["nodes"] if node.get("local_args")]
        self.assertTrue(differ)
        for node in differ:
            for values in node["local_args"].values():
                self.assertEqual(sorted(values), ["mesh_dims", "values"])
        for node in by_rank["nodes"]:
            for values in node.get("local_args", {}).values():
                self.assertEqual(len(values), 128)
        self.assertLess(files["by-dim"].stat().st_size, files["by-rank"].stat().st_size)
        files["gzip"] = self.folder / "plan.json.gz"
        files["gzip"].write_bytes(gzip.compress(files["by-dim"].read_bytes()))
        told, programs = set(), set()
        for name, file in files.items():
            done = explained(path, file, "--format", "json")
            self.assertEqual(complaints(done, (0,)), [], done.stderr)
            plan = json.loads(done.stdout)
            del plan["solve_seconds"]
            told.add(json.dumps(plan))
            out = self.folder / name
            done = shardprop("emit", path, "--plan", file, "--rank", "127",
                             "--format", "json.gz", "-o", out)
            self.assertEqual(complaints(done, (0,)), [], done.stderr)
            programs.add(gzip.decompress((out / "rank127.json.gz").read_bytes()))
        self.assertEqual((len(told), len(programs)), (1, 1))


class OtherSchedule(Case):
    """A plan of a version whose transfers overlapped with the compute of a phase."""

    def earlier(self):
        """Returns a graph and a plan that hides its transfers in full."""
        graph = TINY / "gpt2_train.json.gz"
        done = shardprop("explain", graph, "--mesh", "dp=2", "--recipe", "fsdp=dp",
                         "--overlap", "1", "--topology", DEAR, "--gap", "1", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertTrue(plan.pop("overlap_windows"))
        self.undo_buckets(plan)
        for entry in plan["copies"]:
            if "issued_at" not in entry:
                continue
            del entry["issued_at"], entry["waited_at"]
            full = round(sum(step["us"] for step in entry["steps"]), 3)
            more = round(full - entry["hidden_us"], 3)
            entry["hidden_us"] = full
            plan["summary"]["hidden_us"] = round(plan["summary"]["hidden_us"] + more, 3)
            plan["objective_us"] = round(plan["objective_us"] - more, 3)
        plan["lower_bound_us"] = plan["objective_us"]
        plan["status"] = "optimal"
        return graph, plan

    @staticmethod
    def undo_buckets(plan):
        """Makes the copies of buckets alone, each before its first reader."""
        makers = {out["name"]: n for n, node in enumerate(plan["nodes"])
                  for out in node["outputs"]}
        for entry in plan["copies"]:
            if "bucket" not in entry:
                continue
            if entry.pop("bucket") != entry["id"]:
                for step in entry["steps"]:
                    plan["summary"]["collectives"][step["collective"]] += 1
            if "issued_at" in entry:
                continue
            reads = [n for n, node in enumerate(plan["nodes"])
                     for taken in node["inputs"] if taken.get("copy") == entry["id"]]
            entry["made_at"] = min(reads, default=makers.get(entry["of"], -1) + 1)

    def test_is_priced_again_with_one_note(self):
        graph, plan = self.earlier()
        done = explained(graph, self.file("plan.json", json.dumps(plan)))
        self.assertEqual(complaints(done, (0,)), [], done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("note: the plan was saved before", done.stderr)
        again = json.loads(explained(graph, self.folder / "plan.json", "--format", "json").stdout)
        self.assertGreater(again["objective_us"], plan["objective_us"])
        self.assertEqual(again["status"], "feasible")
        self.assertTrue(again["overlap_windows"])

    def test_its_other_figures_are_compared(self):
        graph, plan = self.earlier()
        node = next(n for n in plan["nodes"] if n["compute_us"] >= 1)
        node["compute_us"] = round(node["compute_us"] - 1, 3)
        plan["summary"]["compute_us"] = round(plan["summary"]["compute_us"] - 1, 3)
        plan["objective_us"] = round(plan["objective_us"] - 1, 3)
        done = explained(graph, self.file("plan.json", json.dumps(plan)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(".compute_us", done.stderr)


class FirstSchema(Case):
    def test_is_what_the_file_says(self):
        done = explained(MLP, command_line.ROOT / "tests/data/plans/mlp_dynamic_schema1.json")
        self.assertEqual(complaints(done, (0,)), [], done.stderr)
        self.assertIn("as the file says", done.stdout)
        self.assertNotIn("optimal", done.stdout)


if __name__ == "__main__":
    command_line.main()
