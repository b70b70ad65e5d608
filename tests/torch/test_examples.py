"""The examples of examples/python run. $SHARDPROP_PACKAGE is the folder of the
built package; train_tiny_llama.py is run by test_parallelize.py."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from running.package import PACKAGE
import shardprop as sp

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPOLOGY = str(ROOT / "examples/topologies/dear-compute.toml")

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
}


def run(name, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "ignore", f"examples/python/{name}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": PACKAGE},
    )


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_plan_my_model(self):
        (self.folder / "config.json").write_text(json.dumps(LLAMA))
        saved = self.folder / "plan.json"
        done = run(
            "plan_my_model.py",
            str(self.folder),
            *("--mesh", "dp=2,tp=2", "--batch", "4", "--sequence", "8"),
            *("-o", str(saved)),
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertIn("model.embed_tokens.weight", done.stdout)
        plan = sp.Plan.load(saved)
        self.assertEqual(plan.mesh, {"dp": 2, "tp": 2})
        self.assertIn("model.layers.1.mlp.up_proj.weight", plan.values)

    def test_to_tp_plan(self):
        graph = ROOT / "examples/graphs/tiny/llama3_train.json.gz"
        plan = sp.plan(graph, "dp=2,tp=2", topology=TOPOLOGY, progress=False)
        saved = self.folder / "plan.json"
        plan.save(saved)
        written = self.folder / "tp_plan.json"
        done = run("to_tp_plan.py", str(graph), str(saved), "-o", str(written))
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        styles = json.loads(written.read_text())
        self.assertIn("model.layers.*.mlp.up_proj", styles)
        self.assertLessEqual(
            set(styles.values()),
            {"colwise", "rowwise", "embedding_colwise", "embedding_rowwise",
             "colwise_gather_output", "rowwise_split_input", "replicate"},
        )
        # dp is a mesh dim that a tp_plan does not know.
        self.assertIn("it lies over dp too", done.stdout)
        self.assertRegex(done.stdout, r"price beside the plan: [\d.]+ us")


if __name__ == "__main__":
    unittest.main()
