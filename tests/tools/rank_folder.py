"""A test with a folder of rank programs and the graph of one device."""

import gzip
import json

from command_line import TINY, Case, shardprop

DEAR = TINY.parents[1] / "topologies/dear-compute.toml"


class Folder(Case):
    """A folder of rank programs, and the graph of one device."""

    def emit(self, graph, mesh, *options):
        out = self.folder / "out"
        self.answered(shardprop(
            "emit", graph, "--mesh", mesh, "--topology", DEAR, "--gap", "0.05",
            "--work-limit", "20000000", "--format", "json.gz", "-o", out, *options))
        return out

    def verify(self, graph, folder, *options):
        return shardprop("verify", graph, "--rank-programs", folder, *options)

    def report(self, graph, folder, status=1, *options):
        done = self.verify(graph, folder, "--format", "json", *options)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        found = json.loads(done.stdout)
        self.assertEqual(found["schema"], "shardprop.verify/1")
        self.assertEqual(found["ok"], status == 0)
        return found

    def change(self, folder, edit):
        """Changes the program of each rank; all ranks must take the change."""
        for path in folder.glob("*.json.gz"):
            program = json.loads(gzip.decompress(path.read_bytes()))
            edit(program)
            path.write_bytes(gzip.compress(json.dumps(program).encode()))

    def shardings(self, folder, edit):
        path = folder / "shardings.json"
        read = json.loads(path.read_text())
        edit(read)
        path.write_text(json.dumps(read))
