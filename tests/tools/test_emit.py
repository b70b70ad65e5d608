"""What `shardprop emit` writes, and what it refuses. That PyTorch loads and runs
it is tested in tests/torch/test_emitted_programs.py."""

import gzip
import json
import os
import pathlib
import resource
import tempfile
import unittest
import zipfile

import command_line
from command_line import MLP, Case, shardprop

GRAPHS = pathlib.Path(MLP).parent
LLAMA = str(GRAPHS / "llama3_train.json.gz")
LIMIT = ["--gap", "0", "--work-limit", "20000000"]

# Compute and memory are dear, sending is cheap: plans are full of shards.
DEAR = GRAPHS.parents[1] / "topologies/dear-compute.toml"


class Emit(Case):
    def emit(self, *arguments, graph=MLP, mesh="2,2", **options):
        return shardprop("emit", graph, "--mesh", mesh, "--topology", DEAR,
                         *LIMIT, *arguments, **options)

    def test_a_program_for_each_rank_where_they_differ(self):
        out = self.folder / "out"
        done = self.emit("-o", out, graph=LLAMA)
        self.answered(done)
        names = sorted(os.listdir(out))
        self.assertEqual(names, ["plan.json", *(f"rank{r}.pt2" for r in range(4)),
                                 "shardings.json"])
        self.assertEqual(sorted(done.stdout.split()),
                         [str(out / name) for name in names])
        shardings = json.loads((out / "shardings.json").read_text())
        plan = json.loads((out / "plan.json").read_text())
        self.assertEqual(shardings["graph"]["hash"], plan["graph"]["hash"])
        for rank in range(4):
            with zipfile.ZipFile(out / f"rank{rank}.pt2") as archive:
                program = json.loads(archive.read("archive/models/model.json"))
                self.assertEqual(archive.read("archive/archive_format"), b"pt2")
            graph = program["graph_module"]["graph"]
            values = graph["tensor_values"]
            for entry in shardings["inputs"]:
                shapes = entry["local_shapes"]
                sizes = [one["as_int"]
                         for one in values[entry["argument"]]["sizes"]]
                self.assertEqual(sizes, shapes[rank % len(shapes)])

    def test_programs_of_the_plan_before_are_taken_away(self):
        out = self.folder / "out"
        self.answered(self.emit("-o", out, graph=LLAMA))
        mine = ["notes.txt", "rank1.txt", "rank9.json.gz", "ranks.pt2"]
        for name in mine:
            (out / name).write_text(name)
        self.answered(self.emit("-o", out, "--rank", "1", graph=LLAMA))
        self.assertIn("rank3.pt2", os.listdir(out))
        self.answered(self.emit("-o", out, mesh="1,1"))
        self.assertEqual(sorted(os.listdir(out)),
                         sorted(["plan.json", "program.pt2", "shardings.json", *mine]))
        for name in mine:
            self.assertEqual((out / name).read_text(), name)

    def test_a_record_that_is_none_removes_nothing(self):
        records = {
            "of another schema": {"schema": "mine/1", "files": ["rank7.pt2"]},
            "of another kind": {"schema": "shardprop.shardings/1",
                                "files": {"rank7.pt2": 1}},
            "of other names": {"schema": "shardprop.shardings/1",
                               "files": ["notes.txt", "../rank7.pt2", "dir/rank7.pt2"]},
        }
        for why, record in records.items():
            for text in (json.dumps(record), json.dumps(record)[:-3]):
                with self.subTest(why, text=text):
                    folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                    out = folder / "out"
                    (out / "dir").mkdir(parents=True)
                    kept = [folder / "rank7.pt2", out / "rank7.pt2",
                            out / "dir/rank7.pt2", out / "notes.txt"]
                    for path in kept:
                        path.write_text("mine")
                    (out / "shardings.json").write_text(text)
                    done = self.emit("-o", out, mesh="1,1")
                    if why == "of other names" and text == json.dumps(record):
                        self.answered(done)
                    else:
                        self.refused(done, 2, "SP0002", f"-o {out}/shardings.json")
                        self.assertEqual((out / "shardings.json").read_text(), text)
                    for path in kept:
                        self.assertEqual(path.read_text(), "mine")

    def test_files_that_no_emit_wrote_stay(self):
        ways = {"program.pt2": [], "plan.json": [], "shardings.json": [],
                "tp_plan.json": ["--as", "tp-plan"],
                "fully_shard.json": ["--as", "fully-shard"],
                "jax.json": ["--as", "jax"]}
        for name, how in ways.items():
            for text in ("", "mine", "{}", json.dumps({"schema": "shardprop.plan/3"})):
                with self.subTest(name, text=text):
                    out = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                    (out / name).write_text(text)
                    done = self.emit("-o", out, *how, mesh="1,1")
                    self.refused(done, 2, "SP0002", f"-o {out}/{name}",
                                 "would replace a file that this command did not write",
                                 "give another folder")
                    self.assertEqual(os.listdir(out), [name])
                    self.assertEqual((out / name).read_text(), text)

    def test_a_program_that_no_record_lists_stays(self):
        out = self.folder / "out"
        self.answered(self.emit("-o", out, "--rank", "1", graph=LLAMA))
        (out / "rank3.pt2").write_text("mine")
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        self.refused(self.emit("-o", out, graph=LLAMA), 2, "SP0002",
                     f"-o {out}/rank3.pt2")
        self.assertEqual({path.name: path.read_bytes() for path in out.iterdir()},
                         before)

    def test_files_of_an_earlier_emit_are_replaced(self):
        out = self.folder / "out"
        for how in (["--as", "tp-plan"], ["--as", "tp-plan"], [], ["--as", "jax"],
                    [], ["--as", "fully-shard"]):
            self.answered(self.emit("-o", out, *how, mesh="1,1"))
        self.assertEqual(sorted(os.listdir(out)),
                         ["fully_shard.json", "jax.json", "plan.json", "program.pt2",
                          "shardings.json", "tp_plan.json"])

    def test_the_inputs_stay(self):
        graph = pathlib.Path(LLAMA).read_bytes()
        for name in ("program.json.gz", "rank0.json.gz", "rank77.pt2", "plan.json",
                     "shardings.json"):
            for link in (False, True):
                with self.subTest(name, link=link):
                    folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                    model = folder / name
                    if link:
                        real = folder / "model.json.gz"
                        real.write_bytes(graph)
                        model.symlink_to(real.name)
                    else:
                        model.write_bytes(graph)
                    before = sorted(os.listdir(folder))
                    done = self.emit("-o", f"{folder}/", graph=model)
                    self.refused(done, 2, "SP0002", f"-o {folder}/{name}",
                                 "would replace an input", f"input: GRAPH {model}")
                    self.assertEqual(sorted(os.listdir(folder)), before)
                    self.assertEqual(model.read_bytes(), graph)
        # Other names are safe, in the same folder too.
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        model = folder / "model.json.gz"
        model.write_bytes(graph)
        self.answered(self.emit("-o", folder, graph=model))
        self.assertEqual(model.read_bytes(), graph)

    def test_a_saved_plan_and_a_topology_stay(self):
        out = self.folder / "out"
        self.answered(self.emit("-o", out, graph=LLAMA))
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        done = shardprop("emit", LLAMA, "--plan", out / "plan.json", "-o", out)
        self.refused(done, 2, "SP0002", f"input: --plan {out}/plan.json")
        self.assertEqual({path.name: path.read_bytes() for path in out.iterdir()},
                         before)
        for how in ("tp-plan", "fully-shard", "jax"):
            name = how.replace("-", "_") + ".json"
            plan = out / name
            plan.write_bytes(before["plan.json"])
            done = shardprop("emit", LLAMA, "--plan", plan, "--as", how, "-o", out)
            self.refused(done, 2, "SP0002", f"-o {plan}")
            self.assertEqual(plan.read_bytes(), before["plan.json"])

    def test_a_link_to_nowhere_stays(self):
        link = self.folder / "link"
        link.symlink_to(self.folder / "nowhere")
        self.refused(self.emit("-o", link), 2, "SP0002")
        self.assertTrue(link.is_symlink())

    def test_one_program_where_ranks_do_not_differ(self):
        out = self.folder / "out"
        self.answered(self.emit("-o", out, mesh="1,1"))
        self.assertEqual(sorted(os.listdir(out)),
                         ["plan.json", "program.pt2", "shardings.json"])

    def test_a_note_names_the_inputs_of_the_optimizer(self):
        for optimizer, inputs in [
            ("adamw", "the state of each parameter, the learning rate and the number"),
            ("sgd", "its inputs are the learning rate, too"),
        ]:
            out = self.folder / optimizer
            done = self.emit("-o", out, "--optimizer", optimizer, graph=LLAMA,
                             mesh="2")
            self.answered(done)
            self.assertIn(f"note: the program runs the step of {optimizer}",
                          done.stderr)
            self.assertIn(inputs, done.stderr)
            shardings = json.loads((out / "shardings.json").read_text())
            kinds = {entry["kind"] for entry in shardings["inputs"]}
            self.assertIn("learning_rate", kinds)
        done = self.emit("-o", self.folder / "none", "--optimizer", "none",
                         graph=LLAMA, mesh="2")
        self.answered(done)
        self.assertNotIn("the step of", done.stderr)

    def test_a_saved_plan_and_one_rank(self):
        plan = self.folder / "first" / "plan.json"
        self.answered(self.emit("-o", plan.parent, graph=LLAMA, mesh="3"))
        out = self.folder / "out"
        self.answered(shardprop("emit", LLAMA, "--plan", plan, "--rank", "2",
                                "--format", "json.gz", "-o", out))
        self.assertEqual(sorted(os.listdir(out)),
                         ["plan.json", "rank2.json.gz", "shardings.json"])
        program = json.loads(gzip.decompress((out / "rank2.json.gz").read_bytes()))
        targets = [node["target"]
                   for node in program["graph_module"]["graph"]["nodes"]]
        waits = targets.count("torch.ops._c10d_functional.wait_tensor.default")
        sends = sum("_c10d_functional" in target for target in targets)
        self.assertEqual(sends, 2 * waits)
        self.assertGreater(waits, 0)
        # What we write we read.
        listed = shardprop("ops", "--supported", out / "rank2.json.gz")
        self.assertIn(listed.returncode, (0, 4), listed.stderr)
        self.refused(shardprop("emit", MLP, "--plan", plan, "-o", out), 3, "SP0708")

    def test_a_changed_plan_is_refused(self):
        plan = self.folder / "first" / "plan.json"
        self.answered(self.emit("-o", plan.parent, graph=LLAMA, mesh="2"))
        read = json.loads(plan.read_text())
        for node in read["nodes"]:
            if node.get("local_args"):
                del node["local_args"]
                break
        changed = self.file("changed.json", json.dumps(read))
        out = self.folder / "out"
        self.refused(shardprop("emit", LLAMA, "--plan", changed, "-o", out), 3,
                     "SP0706", f"`{node['id']}` does not run as its strategy requires", "$.nodes[")
        node["id"] = ""
        nameless = self.file("nameless.json", json.dumps(read))
        self.refused(shardprop("emit", LLAMA, "--plan", nameless, "-o", out), 3,
                     "SP07", f"--plan {nameless} $.nodes[")
        self.assertFalse(out.exists())

    def test_ranks_outside_the_mesh_are_refused(self):
        out = self.folder / "out"
        for rank in ("4", "16777216"):
            self.refused(self.emit("--rank", rank, "-o", out), 2, "SP0108",
                         f"--rank {rank}")
        self.refused(self.emit("--rank", "-1", "-o", out), 2, "SP0001")
        many = shardprop("emit", MLP, "--mesh", "1000000", "-o", out)
        self.refused(many, 2, "SP0001", "--rank N")
        self.assertFalse(out.exists())

    def test_a_full_disk_leaves_nothing(self):
        out = self.folder / "out"
        limit = (65536, 65536)
        done = self.emit(
            "-o", out, graph=LLAMA,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        self.refused(done, 2, "SP0002", "File too large")
        self.assertFalse(out.exists())
        self.refused(self.emit("-o", self.file("x", "") / "y"), 2, "SP0002")

    def test_words_of_pytorch_and_what_they_leave_unsaid(self):
        out = self.folder / "out"
        self.answered(self.emit("--as", "tp-plan", "-o", out, graph=LLAMA,
                                mesh="dp=2,tp=2"))
        said = json.loads((out / "tp_plan.json").read_text())
        self.assertEqual(said["mesh_dim"], "tp")
        self.assertTrue(set(said["tp_plan"].values()) <= {
            "colwise", "rowwise", "colwise_gather_output", "rowwise_split_input",
            "embedding_rowwise", "embedding_colwise", "replicate"})
        lost = max(said["said_objective_us"] - said["objective_us"], 0)
        self.assertAlmostEqual(said["price_us"], lost, places=2)
        self.answered(self.emit("--as", "fully-shard", "-o", out, graph=LLAMA,
                                mesh="dp=2,tp=2"))
        said = json.loads((out / "fully_shard.json").read_text())
        self.assertEqual(said["mesh_dim"], "dp")
        self.assertIn("unsaid", said)

    def styles(self, how, recipe, mesh="dp=2,tp=2"):
        out = self.folder / "out"
        self.answered(self.emit("--as", how, "--recipe", recipe, "-o", out,
                                graph=LLAMA, mesh=mesh))
        name = how.replace("-", "_") + ".json"
        return json.loads((out / name).read_text())

    def test_megatron_is_hugging_faces_own_plan(self):
        def styles_of_layer(said):
            return {name.split(".*.")[1]: style
                    for name, style in said["tp_plan"].items() if ".*." in name}

        # Two ranks cannot share 3 heads of keys: no shards pass inside attention.
        uneven = styles_of_layer(self.styles("tp-plan", "megatron=tp"))
        self.assertEqual(uneven, {
            "self_attn.q_proj": "colwise_gather_output",
            "self_attn.k_proj": "colwise_gather_output",
            "self_attn.v_proj": "colwise_gather_output",
            "self_attn.o_proj": "rowwise_split_input",
            "mlp.gate_proj": "colwise", "mlp.up_proj": "colwise",
            "mlp.down_proj": "rowwise"})
        said = self.styles("tp-plan", "megatron=tp", mesh="dp=2,tp=3")
        self.assertEqual(styles_of_layer(said), {
            "self_attn.q_proj": "colwise", "self_attn.k_proj": "colwise",
            "self_attn.v_proj": "colwise", "self_attn.o_proj": "rowwise",
            "mlp.gate_proj": "colwise", "mlp.up_proj": "colwise",
            "mlp.down_proj": "rowwise"})
        self.assertEqual(said["tp_plan"]["lm_head"], "colwise_gather_output")
        self.assertEqual(said["tp_plan"]["model.embed_tokens"],
                         "embedding_rowwise")
        self.assertEqual(said["unsaid"], [])
        self.assertEqual(said["price_us"], 0)
        # The data dim is beyond these words: each layer says so once.
        said = self.styles("tp-plan", "fsdp=dp,megatron=tp")
        unsaid = {one["value"]: one for one in said["unsaid"]}
        self.assertEqual(len(unsaid), len(said["unsaid"]))
        gate = unsaid["model.layers.*.mlp.gate_proj.weight"]
        self.assertEqual(gate["why"], "it lies over dp too")
        self.assertGreater(gate["values"], 1)

    def test_words_never_cost_less_than_nothing(self):
        # The recipe restricts the plan, and the words may say less than it.
        for recipe in ("fsdp=dp,megatron-sp=tp", "ddp=dp:tp", "hsdp=dp:tp"):
            for how in ("fully-shard", "tp-plan"):
                with self.subTest(recipe=recipe, how=how):
                    said = self.styles(how, recipe)
                    lost = said["said_objective_us"] - said["objective_us"]
                    self.assertAlmostEqual(said["price_us"], max(lost, 0), places=2)

    def test_styles_are_of_what_matmuls_read(self):
        """q is stored in shards and gathered before use, k and v are read in shards:
        no layer of the block can rely on shards of another one."""
        attn = "model.layers.*.self_attn."
        pins = [f"stored:{attn}q_proj.weight=S(0)", f"used:{attn}q_proj.weight=R",
                *(f"used:{attn}{name}_proj.weight=S(0)" for name in "kv"),
                f"used:{attn}o_proj.weight=S(1)"]
        out = self.folder / "out"
        self.answered(self.emit("--as", "tp-plan", "-o", out, graph=LLAMA, mesh="tp=2",
                                *(word for pin in pins for word in ("--pin", pin))))
        said = json.loads((out / "tp_plan.json").read_text())
        styles = {name.split(".*.")[1]: style
                  for name, style in said["tp_plan"].items() if ".self_attn." in name}
        # An omitted module would follow the model's own plan, where q is colwise.
        self.assertEqual(styles, {"self_attn.q_proj": "replicate",
                                  "self_attn.k_proj": "colwise_gather_output",
                                  "self_attn.v_proj": "colwise_gather_output",
                                  "self_attn.o_proj": "rowwise_split_input"})
        modules = said["parallelize_module"]
        self.assertFalse([name for name in modules if name.endswith(".q_proj")])
        layers = [name for name in modules if name.endswith(".o_proj")]
        self.assertTrue(layers)
        for name in layers:
            self.assertEqual(modules[name], "RowwiseParallel(input_layouts=Replicate())")
        unsaid = {one["value"]: one["why"] for one in said["unsaid"]}
        self.assertIn("stored in shards", unsaid[f"{attn}q_proj.weight"])

    def test_layers_of_different_styles_get_a_note(self):
        out = self.folder / "out"
        gate = "model.layers.{}.mlp.gate_proj"
        pins = [f"used:{gate.format(0)}.weight=R", f"used:{gate.format(1)}.weight=S(0)"]
        done = self.emit("--as", "tp-plan", "-o", out, graph=LLAMA, mesh="tp=2",
                         *(word for pin in pins for word in ("--pin", pin)))
        self.answered(done)
        said = json.loads((out / "tp_plan.json").read_text())
        self.assertEqual(said["tp_plan"][gate.format(0)], "replicate")
        self.assertTrue(said["tp_plan"][gate.format(1)].startswith("colwise"))
        (note,) = said["notes"]
        self.assertIn("Hugging Face refuses numbered names", note)
        self.assertIn(f"note: {note}", done.stderr)
        self.assertEqual(self.styles("tp-plan", "megatron=tp")["notes"], [])

    def test_sequence_parallelism_is_not_dropped_silently(self):
        said = self.styles("tp-plan", "megatron-sp=tp")
        sequences = {one["value"]: one for one in said["unsaid"]
                     if "sequence parallel" in one["why"]}
        self.assertIn("model.layers.*.input_layernorm.weight", sequences)
        for one in sequences.values():
            self.assertIn("S(1)", one["placements"])
        # Megatron without it has nothing to list.
        self.assertEqual(self.styles("tp-plan", "megatron=tp")["unsaid"], [])

    def test_jax_takes_specs(self):
        out = self.folder / "out"
        self.answered(self.emit("--as", "jax", "--recipe", "fsdp=dp,megatron=tp",
                                "-o", out, graph=LLAMA, mesh="dp=2,tp=2"))
        said = json.loads((out / "jax.json").read_text())
        self.assertEqual(said["mesh"],
                         {"axis_names": ["dp", "tp"], "axis_sizes": [2, 2]})
        plan = json.loads((out / "plan.json").read_text())
        unsaid = {one["value"] for one in said["unsaid"]}
        for name, value in plan["values"].items():
            if name not in said["in_specs"]:
                self.assertTrue(unsaid)
                continue
            cuts = {}
            for axis, placement in zip(("dp", "tp"), value["placements"], strict=True):
                if placement.startswith("S("):
                    cuts.setdefault(int(placement[2]), []).append((placement, axis))
            for dim, axes in enumerate(said["in_specs"][name]):
                self.assertEqual(set(axes or []),
                                 {axis for _, axis in cuts.get(dim, [])})
        # FSDP over tensor parallelism: tp cuts first.
        self.assertIn(["tp", "dp"],
                      [axes for spec in said["in_specs"].values() for axes in spec])
        self.assertEqual(said["price_us"], 0)

    def test_fully_shard_names_layers_and_the_root_last(self):
        said = self.styles("fully-shard", "fsdp=dp")
        self.assertEqual(said["unsaid"], [])
        self.assertEqual(said["price_us"], 0)
        *layers, root = said["fully_shard"]
        self.assertEqual(root, "")
        self.assertEqual(layers,
                         [f"model.layers.{i}" for i in range(len(layers))])
        self.assertGreater(len(layers), 1)
        # Where nothing lies over the data dim there is nothing to shard.
        said = self.styles("fully-shard", "megatron=tp")
        self.assertEqual(said["fully_shard"], [])
        self.assertTrue(said["unsaid"])


if __name__ == "__main__":
    command_line.main()
