"""Flags that do not go together, outputs that have no place, sizes that no machine
has: said before any work is begun, and nothing is passed over in silence."""

import collections
import hashlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

import command_line
import fixed_sizes
import made_graphs
from command_line import BINARY, FULL, MLP, ROOT, SANITIZED, TINY, Case, shardprop

LLAMA = str(TINY / "llama3_infer.json.gz")
BIG = str(ROOT / "examples/graphs/llama3_8b_infer.json.gz")
LINE = ('{"op": "aten.relu.default", "mesh": [2], "args": '
        '[{"shape": [8], "dtype": "f32", "placements": ["R"]}]}\n')
PROBLEM = ('{"problem": {"name": "x", "nodes": {"intervals": [[0, 1]], '
           '"costs": [[1, 2]], "usages": [[0, 0]]}}}')
TABLE = "8 1\n16 2\n"
VIT = str(ROOT / "examples/graphs/vit_b16_infer.json.gz")

def _within_kib(kibibytes):
    """Runs with so many addresses; sanitizers need them all."""
    limit = kibibytes << 10
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                     (limit, limit))}


class Plans(Case):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "plan.json"
        self.answered(shardprop("explain", MLP, "--mesh", "dp=2,tp=2", "--precision",
                                "mixed", "--format", "json", "-o", self.plan))

    def explain(self, *more):
        return shardprop("explain", MLP, "--plan", self.plan, *more)

    def test_what_makes_another_plan_is_refused_beside_one(self):
        for more in (["--pin", "*=R,R"], ["--topology", "nope"], ["--compare"],
                     ["--recipe", "fsdp"], ["--memory", "1"], ["--overlap", "0.5"],
                     ["--accumulate", "2"], ["--optimizer", "sgd"],
                     ["--optimizer", "none"]):
            self.refused(self.explain(*more), 2, "SP0001", "--> " + " ".join(more))
        for more in ([], ["--mesh", "dp=2,tp=2"], ["--time-limit", "1"],
                     ["--threads", "2"], ["--strict"]):
            self.answered(self.explain(*more))

    def test_an_emitted_plan_is_no_better_proven_than_it_was(self):
        out = self.folder / "out"
        self.answered(shardprop("emit", MLP, "--plan", self.plan, "-o", out))
        self.assertEqual(json.loads((out / "plan.json").read_text())["proof"],
                         "as the file says")

    def test_words_are_priced_with_the_options_of_the_plan(self):
        priced = {}
        for name, more in (("new", ["--mesh", "dp=2,tp=2", "--precision", "mixed"]),
                           ("saved", ["--plan", self.plan])):
            out = self.folder / name
            self.answered(shardprop("emit", MLP, *more, "--as", "tp-plan", "-o", out))
            said = json.loads((out / "tp_plan.json").read_text())
            priced[name] = said["said_objective_us"], said["price_us"]
        self.assertEqual(priced["new"], priced["saved"])
        self.refused(shardprop("emit", MLP, "--plan", self.plan, "--as", "tp-plan",
                               "--rank", "1", "-o", self.folder / "x"), 2, "--rank 1")


class SymbolicSizes(Case):
    """--size on a graph whose batch is s77, exported as 4 with 2 <= s77 <= 64."""

    def explain(self, *more):
        return shardprop("explain", MLP, *more)

    def rows(self, *more):
        done = self.explain("--mesh", "2", "--format", "json", *more)
        self.answered(done)
        plan = json.loads(done.stdout)
        return plan["values"]["x"]["shape"][0], plan

    def test_by_name_and_as_batch(self):
        self.assertEqual(self.rows()[0], 4)
        for size in ("s77=8", "batch=8"):
            rows, plan = self.rows("--size", size)
            self.assertEqual(rows, 8)
            self.assertEqual(plan["options"]["size"], [size])
            self.assertIn("s77 == 8", json.dumps(plan["guards"]))
            shapes = [out["shape"] for node in plan["nodes"] for out in node["outputs"]]
            self.assertIn([48, 24], shapes)
        self.assertIn("s77 == 8", self.explain("--mesh", "2", "--size", "s77=8").stdout)

    def test_a_saved_plan_brings_its_sizes(self):
        plan = self.folder / "plan.json"
        self.answered(self.explain("--mesh", "2", "--size", "batch=8",
                                   "--format", "json", "-o", plan))
        self.answered(self.explain("--plan", plan))
        self.answered(self.explain("--plan", plan, "--size", "batch=8"))
        self.refused(self.explain("--plan", plan, "--size", "batch=16"), 2, "SP0001",
                     "made with --size batch=8", "--size batch=16")
        self.answered(shardprop("verify", MLP, "--plan", plan))

    def test_what_is_no_size(self):
        for text, words in (
            ("s77=65", ["`s77` cannot be 65", "s77 <= 64"]),
            ("batch=1", ["`s77` cannot be 1", "s77 >= 2"]),
            ("seq=8", ["`seq` is no symbolic size", "sizes to set: s77"]),
            ("s78=8", ["`s78` is not a symbolic size", "sizes to set: s77"]),
            ("s77=8,batch=8", ["are one size"]),
            ("s77=8,s77=8", ["given twice"]),
            ("s77", ["NAME=N"]),
            ("s77=8,", ["NAME=N"]),
            ("=8", ["NAME=N"]),
            ("s77=-8", ["NAME=N"]),
            ("s77=99999999999999999999", ["NAME=N"]),
        ):
            with self.subTest(text):
                done = self.explain("--mesh", "2", "--size", text)
                self.refused(done, 2, "SP0001", f"--size {text}", *words)
        self.refused(self.explain("--mesh", "2", "--bound", "s77=8"), 2, "SP0001",
                     "set it: --size s77=8")


class FixedSizes(Case):
    """--size and --other-size on a graph of fixed sizes."""

    def graph(self, rows):
        return fixed_sizes.graph(self.folder, rows)

    def test_every_command_takes_another_export(self):
        a, b = self.graph(4), self.graph(8)
        sizes = ["--size", "batch=12", "--other-size", b]
        plan = self.folder / "plan.json"
        self.answered(shardprop("explain", a, "--mesh", "2", *sizes, "--format", "json",
                                "-o", plan))
        made = json.loads(plan.read_text())
        self.assertEqual(made["values"]["x"]["shape"], [12, 6])
        self.assertEqual(made["options"]["size"], ["batch=12"])
        self.assertEqual(made["options"]["other_size"], [str(b)])
        direct = json.loads(shardprop("explain", self.graph(12), "--mesh", "2",
                                      "--format", "json").stdout)
        self.assertEqual(made["graph"]["hash"], direct["graph"]["hash"])
        self.assertEqual(made["objective_us"], direct["objective_us"])
        for command in (["why", a, "mul", "--mesh", "2", *sizes],
                        ["verify", a, "--mesh", "2", *sizes],
                        ["ops", "--supported", a, *sizes],
                        ["emit", a, "--mesh", "2", *sizes, "-o", self.folder / "out"],
                        ["explain", a, "--plan", plan],
                        ["verify", a, "--plan", plan]):
            self.answered(shardprop(*command))

    def test_an_ambiguous_export_is_refused_with_the_command_that_helps(self):
        a = self.graph(4)
        done = shardprop("explain", a, "--mesh", "2", "--size", "batch=12")
        self.refused(done, 2, "SP0001", "does not tell which numbers follow `batch`",
                     "--> --size batch=12", "--size batch=12 --other-size GRAPH2")
        # 5 divides neither 6 nor another number.
        self.answered(shardprop("explain", self.graph(5), "--mesh", "2", "--size",
                                "batch=12"))
        self.refused(shardprop("explain", a, "--mesh", "2", "--other-size", a), 2,
                     "no use without a size", f"--> --other-size {a}")
        self.refused(shardprop("explain", a, "--mesh", "2", "--size", "batch=12",
                               "--other-size", self.folder / "none.json"), 3,
                     "none.json")
        self.refused(shardprop("explain", a, "--mesh", "2", "--size", "batch=12",
                               "--other-size", MLP), 2, "the exports")


class Outputs(Case):
    def test_a_place_for_the_output_is_looked_for_first(self):
        for path, why in ((self.folder / "no" / "file", "No such file"),
                          (self.folder, "Is a directory"), ("", "No such file")):
            self.refused(shardprop("explain", "missing.json", "--mesh", "2", "-o", path),
                         2, "SP0002", why, f"-o {path}".strip())

    def test_an_input_is_never_written_over(self):
        """Every option of every command that names a file to read."""
        plan = shardprop("explain", MLP, "--mesh", "2", "--format", "json").stdout
        toml = shardprop("topologies", "--fit",
                         f"all_gather:8x2={self.file('t', TABLE)}").stdout
        graph = pathlib.Path(MLP).read_bytes()
        contents = {"graph.json.gz": graph, "plan.json": plan.encode(),
                    "lines": LINE.encode(), "problem": PROBLEM.encode(),
                    "lab.toml": toml.encode(), "table": TABLE.encode()}
        planned = ["explain", "why", "verify"]
        commands = [
            *([[name, "graph.json.gz", *(["relu"] if name == "why" else []),
                "--mesh", "2"], "graph.json.gz"] for name in planned),
            *([[name, MLP, *(["relu"] if name == "why" else []), "--mesh", "2",
                "--topology", "lab.toml"], "lab.toml"] for name in planned),
            [["explain", MLP, "--plan", "plan.json"], "plan.json"],
            [["verify", MLP, "--plan", "plan.json"], "plan.json"],
            [["ops", "--supported", "graph.json.gz"], "graph.json.gz"],
            [["propagate", "--batch", "lines"], "lines"],
            [["propagate", "--batch", "lines", "--topology", "lab.toml"], "lab.toml"],
            [["solve", "problem"], "problem"],
            [["diff", "plan.json", "graph.json.gz"], "plan.json"],
            [["diff", "graph.json.gz", "plan.json"], "plan.json"],
            [["topologies", "--fit", "all_gather:8x2=table"], "table"],
            [["topologies", "--topology", "lab.toml"], "lab.toml"],
            [["redistribute", "--mesh", "2", "--shape", "8", "S(0)", "R",
              "--topology", "lab.toml"], "lab.toml"],
        ]
        (self.folder / "link").mkdir()
        for command, name in commands:
            path = self.folder / name
            for how in ("itself", "dots", "soft link", "hard link"):
                with self.subTest(command=command, how=how):
                    for other, content in contents.items():
                        self.file(other, content)
                    target = self.folder / "link" / "target"
                    target.unlink(missing_ok=True)
                    if how == "itself":
                        target = path
                    elif how == "dots":
                        target = self.folder / "link" / ".." / name
                    elif how == "soft link":
                        target.symlink_to(path)
                    else:
                        os.link(path, target)
                    full = [str(self.folder / word) if word in contents else
                            word.replace("=table", f"={self.folder}/table")
                            for word in command]
                    done = shardprop(*full, "-o", target)
                    self.refused(done, 2, "SP0002", "would replace an input",
                                 f"-o {target}", name)
                    self.assertEqual(path.read_bytes(), contents[name])

    def test_descriptors_are_written_to(self):
        told = shardprop("topologies").stdout
        call = ["topologies", "-o"]
        self.assertEqual(shardprop(*call, "/dev/stdout").stdout, told)
        self.assertEqual(shardprop(*call, "/dev/stderr").stderr, told)
        file = self.file("older", "a line before\n")
        for folder in ("/dev/fd", "/proc/self/fd"):
            with file.open("a") as stream:
                number = stream.fileno()
                self.answered(shardprop(*call, f"{folder}/{number}", pass_fds=[number]))
        self.assertEqual(file.read_text(), "a line before\n" + told + told)
        self.refused(shardprop(*call, "/dev/fd/99"), 2, "SP0002", "-o /dev/fd/99")

    def emitted(self, out, **options):
        return shardprop("emit", LLAMA, "--mesh", "3", "-o", out, **options)

    def test_a_failed_emission_leaves_the_older_one(self):
        out = self.folder / "out"

        def files():
            return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                    for path in out.iterdir() if path.is_file()}

        done = self.emitted(out)
        self.answered(done)
        names = [pathlib.Path(line).name for line in done.stdout.splitlines()]
        self.assertEqual(sorted(files()), sorted(names))
        for path in out.iterdir():
            # The record of the older files has to stay one.
            is_record = path.name == "shardings.json"
            path.write_bytes(path.read_bytes() + b" " if is_record else b"older")
        older = files()
        limit = (1 << 16, 1 << 16)
        done = self.emitted(
            out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        self.refused(done, 2, "SP0002", f"-o {out}/")
        self.assertEqual(files(), older)
        # The last of the programs has no place.
        last = out / names[-2]
        last.unlink()
        last.mkdir()
        del older[last.name]
        self.refused(self.emitted(out), 2, "SP0002", last.name, "Is a directory")
        self.assertEqual(files(), older)
        last.rmdir()
        self.answered(self.emitted(out))
        self.assertEqual(sorted(files()), sorted(names))
        self.assertFalse(set(files().values()) & set(older.values()))

    def test_an_interrupted_emission_leaves_nothing(self):
        out = self.folder / "made" / "here"
        running = subprocess.Popen(
            [BINARY, "emit", MLP, "--mesh", "100000", "-o", out],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
        while not out.exists() and running.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=command_line.TIMEOUT_S)
        self.assertEqual(running.returncode, -signal.SIGINT, err)
        self.assertIn("nothing is written", err)
        self.assertFalse(out.parent.exists())


class Sizes(Case):
    def lacking(self, done, *words):
        """Checks that the run ended for lack of memory before it began."""
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr.splitlines(keepends=True)[0], r"^error\[SP0910\]: ")
        self.assertRegex(done.stderr, command_line.ERROR)
        for word in words:
            self.assertIn(word, done.stderr)

    def redistribute(self, *more, **options):
        return shardprop("redistribute", *more, **options)

    def test_trials_that_no_machine_has_memory_for(self):
        for mesh, shape in (("2", "1000000000000000"), ("1000000", "64")):
            began = time.monotonic()
            done = self.redistribute("--mesh", mesh, "--shape", shape, "--run", "local",
                                     "S(0)", "R")
            self.lacking(done, "--run local", "iB of memory")
            self.took_time(time.monotonic() - began, 10)

    @unittest.skipIf(SANITIZED, "sanitizers need more addresses than that")
    def test_trials_beyond_what_is_left(self):
        within = _within_kib(2048 << 10)
        for mesh, shape in (("2", "1000000000"), ("8000", "64")):
            done = self.redistribute("--mesh", mesh, "--shape", shape, "--run", "local",
                                     "S(0)", "R", **within)
            self.lacking(done, "--run local", "GiB of memory")

    @unittest.skipIf(SANITIZED, "sanitizers need more addresses than that")
    def test_a_model_too_large_to_run(self):
        done = shardprop("verify", BIG, "--mesh", "2", "--time-limit", "20",
                         **_within_kib(3072 << 10))
        self.lacking(done, "values of the unsharded program", "GiB")

    def test_ranks_far_away_cost_nothing(self):
        done = self.redistribute("--mesh", "2", "--shape", "8", "--dst-mesh", "3",
                                 "--dst-first-rank", "16777213", "--run", "local",
                                 "S(0)", "R")
        self.answered(done)
        self.assertIn("every byte is right", done.stdout)
        self.refused(self.redistribute("--mesh", "2", "--shape", "8",
                                       "--dst-first-rank", "3", "S(0)", "R"),
                     2, "--dst-first-rank 3", "--dst-mesh")

    def test_shapes(self):
        for shape in ("9223372036854775807", "4611686018427387904,4", "8,", "-1"):
            self.refused(self.redistribute("--mesh", "2", f"--shape={shape}", "S(0)", "R"),
                         2, "SP0001", f"--shape {shape}", "= help: ")


@unittest.skipIf(SANITIZED, "sanitizers need more addresses than that")
class Memory(Case):
    """As little memory as it may be: an answer that is whole, or an error."""

    def runs_within(self, *args):
        """Through limits from too little for anything to enough for all."""
        out = self.folder / "out.json"
        ended = collections.Counter()
        for kibibytes in range(24 << 10, 96 << 10, 577 if FULL else 2_887):
            out.unlink(missing_ok=True)
            if shardprop("--version", **_within_kib(kibibytes)).returncode != 0:
                continue  # no room for the program itself
            done = shardprop(*args, "-o", out, **_within_kib(kibibytes))
            ended[done.returncode] += 1
            if done.returncode == 0:
                json.loads(out.read_text())
                continue
            self.assertEqual(done.returncode, 1, f"{kibibytes} KiB: {done.stderr}")
            self.assertTrue(done.stderr.startswith("error[SP0910]: "), done.stderr)
            self.assertRegex(done.stderr, command_line.ERROR)
            self.assertFalse(out.exists())
        self.assertGreater(ended[0], 0)
        return ended

    def test_a_plan(self):
        ended = self.runs_within("explain", VIT, "--mesh", "2,2", "--threads", "1",
                                 "--format", "json")
        self.assertGreater(ended[1], 0)  # there are limits that are too small

    def test_a_redistribution(self):
        self.runs_within("redistribute", "--mesh", "8,8,8", "--shape", "64,64,64",
                         "--format", "json", "S(0),S(1),S(2)", "R,S(0),S(1)")


class Usage(Case):
    def test_the_wrong_word_is_named(self):
        explain = ["explain", MLP, "--mesh", "2"]
        for more, words in (
                (["--tresads", "2"], ["has no option `--tresads`", "`--threads`"]),
                (["--nope=3"], ["has no option `--nope`", "--> --nope=3"]),
                ([MLP], ["one argument too many"]),
                (["--mesh", "4"], ["--mesh is given more than once"]),
                (["--seed"], ["--seed needs a value", "--seed N"]),
                (["--format", "xml"], ["`xml`", "--> --format xml", "text, json"]),
                (["--topology", "dgx-h10"], ["--> --topology dgx-h10", "`dgx-h100`"])):
            self.refused(shardprop(*explain, *more), 2, "-->", "= help: ", *words)
        self.refused(shardprop("explain"), 2, "GRAPH is required", "--> explain")

    def test_one_topology(self):
        done = shardprop("topologies", "--topology", "dgx-h100", "--format", "json")
        self.answered(done)
        self.assertEqual([one["name"] for one in json.loads(done.stdout)], ["dgx-h100"])
        self.refused(shardprop("topologies", "--topology", "nope"), 2, "SP0109")
        raw = self.file("raw.toml", 'description = "\\u001b[31m red"\n')
        done = shardprop("topologies", "--topology", raw)
        self.answered(done)
        self.assertNotIn("\x1b", done.stdout)

    def test_words_in_another_place(self):
        for call, words in (
                (["--mesh", "2", "explain", MLP],
                 ["`--mesh` is not read as an option there", "--> --mesh",
                  "options come after `explain`"]),
                (["--versio"], ["`--versio`", "--> --versio", "did you mean `--version`?"]),
                (["-x"], ["`-x`", "--> -x"]),
                (["--", "explain"], ["is not read as a command there", "-->",
                                     "the command is the first word"])):
            done = shardprop(*call)
            self.refused(done, 2, "SP0001", "= help: ", *words)
        for pin, word in (("stored:stored:x=R", "stored:"), ("name:op:x=R", "op:"),
                          ("op:used:x=R", None)):
            done = shardprop("explain", MLP, "--mesh", "2", "--pin", pin)
            self.refused(done, 2, "SP0702")
            if word:
                self.assertIn(f"`{word}` stands once", done.stderr)
                self.assertNotIn("did you mean", done.stderr)

    def test_rules_and_bounds_are_given_once(self):
        explain = ["explain", MLP, "--mesh", "2"]
        rule = "mylib.f=pointwise()"
        for again in (rule, "mylib::f=batch(0)"):
            self.refused(shardprop(*explain, "--rule", rule, "--rule", again), 2, "SP0001",
                         "`mylib.f`", f"--> --rule {again}")
        self.refused(shardprop(*explain, "--bound", "u0=5", "--bound", "u0=6"), 2, "SP0001",
                     "`u0`", "--> --bound u0=6")
        self.refused(shardprop(*explain, "--bound", "u0=5"), 2, "SP0001",
                     "`u0` is not a size of this program", "--> --bound u0=5")

    def made(self, target, outputs=("n0",), dtype=7, shape=(64, 64), first="self",
             **more):
        """A program of one call on x: f32[64,64]."""
        g = made_graphs.Graph()
        program = made_graphs.build("relu", 1)
        graph = program["graph_module"]["graph"]
        call = graph["nodes"][0]
        call["target"] = "torch.ops.aten." + target
        call["inputs"][0]["name"] = first
        # `dtype_` is the dtype of the call, `dtype` that of its result.
        call["inputs"] += [{"name": name.rstrip("_"), "arg": arg, "kind": 1}
                           for name, arg in more.items()]
        if len(outputs) > 1:
            call["outputs"] = [{"as_tensors": [{"name": name} for name in outputs]}]
        for name in outputs:
            g.meta(name, shape)
            graph["tensor_values"][name] = g.metas[name] | {"dtype": dtype}
        return self.file(target + ".json", json.dumps(program))

    def test_calls_that_a_rule_does_not_take_run_replicated(self):
        graph = self.made("bmm.default", mat2=made_graphs.tensor("x"))
        explain = ["explain", graph, "--mesh", "2"]
        done = shardprop(*explain, "--format", "json")
        self.answered(done)
        plan = json.loads(done.stdout)
        self.assertIn("taken as it is written, to run replicated", " ".join(note["text"] for note in plan["notes"] if note["code"] == "graph"))
        self.assertEqual([one["op"] for one in plan["unsupported"]], ["aten.bmm.default"])
        self.assertNotEqual(plan["status"], "optimal")
        self.refused(shardprop(*explain, "--strict"), 4, "SP0201", "aten.bmm.default")
        # Outside of a file the line does not specify the result.
        line = {"op": "aten.bmm.default", "mesh": [2], "args": [
            {"shape": [64, 64], "dtype": "f32", "placements": ["R"]}] * 2}
        done = shardprop("propagate", "--batch", self.file("line", json.dumps(line)))
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "SP0507")

    def test_what_ranks_cannot_run_is_said(self):
        verify = ["verify", "--mesh", "2"]
        for graph, code, word in (
                (self.made("poisson.default"), "SP0711", "give it as an input"),
                (self.made("nonzero.default", dtype=5, shape=(9, 2)), "SP1001",
                 "does not evaluate `aten.nonzero.default`"),
                (self.made("where.default", ("n0", "n1"), dtype=5, shape=(9,),
                           first="condition"), "SP1001", "does not evaluate `aten.where.default`"),
                (self.made("bmm.default", mat2=made_graphs.tensor("x")), "SP1001",
                 "the rule of `aten.bmm.default` does not take"),
                (self.made("view.dtype", dtype=8, shape=(64, 32),
                           dtype_={"as_scalar_type": 8}), "SP1001", "--dtype own")):
            self.answered(shardprop("explain", graph, "--mesh", "2"))
            self.refused(shardprop(*verify, graph), 4, code, word, "= help: ")
        self.answered(shardprop(*verify, graph, "--dtype", "own"))

    def test_a_program_of_one(self):
        self.refused(shardprop("explain", MLP, "--mesh", "2", "--program", "x"), 3,
                     "SP0404", "`x`", MLP)


if __name__ == "__main__":
    command_line.main()
