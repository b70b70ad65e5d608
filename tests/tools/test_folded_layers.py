"""The text of a plan has each kind of layer once, whatever runs again in the layers."""

import command_line
from command_line import TINY, Case, shardprop


class FoldedLayers(Case):
    def layers(self, graph, rule, name):
        """Returns the titles of the layers in the table of modules."""
        done = shardprop("explain", str(TINY / f"{graph}.json.gz"), "--blocks", "8",
                         "--mesh", "2", "--work-limit", "3000000", "--recompute", rule,
                         "--execution", "eager")
        self.answered(done)
        modules = done.stdout[done.stdout.index("\nmodules"):]
        lines = [line.split("  ")[2] for line in modules.splitlines()
                 if line.startswith("    ")]
        return [line for line in lines if line.startswith(name)]

    def test_layers_whose_modules_run_again_are_folded(self):
        for rule in ("none", "full", "selective", "modules:*.mlp", "modules:*attn*"):
            with self.subTest(rule=rule):
                self.assertEqual(self.layers("gpt2_train", rule, "h."),
                                 ["h.0..7 (x8)"])

    def test_the_layers_that_a_rule_names_are_a_kind_of_their_own(self):
        self.assertEqual(self.layers("gpt2_train", "full:3", "h."),
                         ["h.0..2 (x3)", "h.3..7 (x5)"])
        self.assertEqual(self.layers("gpt2_train", "modules:*.h.5.mlp", "h."),
                         ["h.0..4 (x5)", "h.5", "h.6,7 (x2)"])


if __name__ == "__main__":
    command_line.main()
