"""Pipes, devices and directories as inputs; full disks, closed pipes and older
files as outputs."""

import gzip
import json
import os
import pathlib
import resource
import signal
import subprocess
import threading
import time
import unittest

import command_line
from command_line import BINARY, MLP, Case, shardprop

EXPLAIN = ["explain", MLP, "--mesh", "2,2"]
LINE = (
    '{"op": "aten.relu.default", "mesh": [2], "args": '
    '[{"shape": [8], "dtype": "f32", "placements": ["R"]}]}\n'
)
PROBLEM = (
    '{"problem": {"name": "x", "nodes": {"intervals": [[0, 1]], '
    '"costs": [[1, 2]], "usages": [[0, 0]]}}}'
)


class Inputs(Case):
    def test_pipes_are_read(self):
        direct = shardprop(*EXPLAIN)
        self.answered(direct)
        packed = pathlib.Path(MLP).read_bytes()
        for content in (packed, gzip.decompress(packed)):
            read, write = os.pipe()
            feeder = threading.Thread(
                target=lambda: (os.write(write, content), os.close(write))
            )
            feeder.start()
            piped = shardprop("explain", "/dev/stdin", "--mesh", "2,2", stdin=read)
            feeder.join()
            os.close(read)
            self.answered(piped)
            self.assertEqual(
                piped.stdout.splitlines()[1:], direct.stdout.splitlines()[1:]
            )

    def test_every_reader_takes_a_fifo(self):
        plan = shardprop(*EXPLAIN, "--format", "json").stdout
        cases = {
            "plan": (plan, ["explain", MLP, "--plan"]),
            "lines": (LINE, ["propagate", "--batch"]),
            "problem": (PROBLEM, ["solve"]),
            "lab.toml": ('name = "lab"\n', [*EXPLAIN, "--topology"]),
            "table": ("8 1\n16 2\n", ["topologies", "--fit"]),
        }
        for name, (content, command) in cases.items():
            with self.subTest(name):
                fifo = self.folder / name
                os.mkfifo(fifo)
                feeder = threading.Thread(target=lambda: fifo.write_text(content))
                feeder.start()
                last = f"all_gather:8x2={fifo}" if name == "table" else fifo
                self.answered(shardprop(*command, last))
                feeder.join()

    def test_what_has_no_end_or_no_content_is_refused_by_name(self):
        link = self.folder / "link"
        link.symlink_to("nowhere")
        loop = self.folder / "loop"
        loop.symlink_to("loop")
        kinds = {
            str(self.folder): "it is a directory",
            "/dev/zero": "it is a device",
            "/dev/null": "it is a device",
            "nofile": "it does not exist",
            str(link): "it is a link to a file that does not exist",
            str(loop): "symbolic links",
            "x" * 300: "too long",
            "-": "standard input is /dev/stdin",
            "": "its name is empty",
        }
        commands = {
            "graph": lambda path: ["explain", path, "--mesh", "2"],
            "supported": lambda path: ["ops", "--supported", path],
            "plan": lambda path: ["explain", MLP, "--plan", path],
            "lines": lambda path: ["propagate", "--batch", path],
            "problem": lambda path: ["solve", path],
        }
        for path, word in kinds.items():
            for name, command in commands.items():
                if path == "" and name in ("supported", "plan"):
                    continue  # as if the option were not given
                with self.subTest(path=path[:20], command=name):
                    self.refused(shardprop(*command(path)), 3, word, "-->")
        (self.folder / "x.toml").mkdir()
        folder = self.folder / "x.toml"
        self.refused(
            shardprop(*EXPLAIN, "--topology", folder), 3, "it is a directory"
        )
        self.refused(
            shardprop("topologies", "--fit", f"all_gather:8x2={self.folder}"),
            3,
            "it is a directory",
        )

    def test_tables_of_measurements(self):
        empty = self.file("t", "")
        done = shardprop("topologies", "--fit", f"all_gather:8x2={empty}")
        self.refused(done, 3, "at least two sizes", "-->", "help")
        most = "9223372036854775807"
        done = shardprop("topologies", "--fit", f"all_gather:{most}x{most}={empty}")
        self.refused(done, 2, "--fit", "ranks")
        line = self.file("t", "8 1\n" + "x" * 100_000 + "\n")
        done = shardprop("topologies", "--fit", f"all_gather:8x2={line}")
        self.refused(done, 3, "line 2")
        self.assertLess(len(done.stderr), 1000)

    def test_an_empty_topology_is_the_default(self):
        empty = self.file("x.toml", "")
        self.answered(shardprop(*EXPLAIN, "--topology", empty))


class Silence(Case):
    """Creates a pipe that stays open and to which no process writes."""

    def setUp(self):
        super().setUp()
        self.read, self.write = os.pipe()
        self.addCleanup(os.close, self.read)
        self.addCleanup(os.close, self.write)

    def commands(self):
        fifo = self.folder / "quiet.toml"
        os.mkfifo(fifo)
        quiet = "/dev/stdin"
        return [
            ["explain", quiet, "--mesh", "2"],
            ["explain", fifo, "--mesh", "2"],
            ["explain", MLP, "--plan", quiet],
            [*EXPLAIN, "--topology", fifo],
            ["why", quiet, "relu", "--mesh", "2"],
            ["verify", quiet, "--mesh", "2"],
            ["emit", quiet, "--mesh", "2", "-o", self.folder / "out"],
            ["solve", quiet],
        ]

    def test_it_is_waited_for_until_the_limit(self):
        for command in self.commands():
            with self.subTest(command=command):
                begin = time.monotonic()
                done = shardprop(*command, "--time-limit", "0.5", stdin=self.read)
                self.assertLess(time.monotonic() - begin, 30)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("error[SP0005]: time ran out", done.stderr)
                self.assertIn("\n  --> ", done.stderr)

    def test_half_of_a_file_is_none(self):
        os.write(self.write, pathlib.Path(MLP).read_bytes()[:100])
        done = shardprop("explain", "/dev/stdin", "--mesh", "2", "--time-limit", "0.5",
                         stdin=self.read)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("SP0005", done.stderr)

    def test_a_signal_ends_it_at_once(self):
        without_limit = [
            ["propagate", "--batch", "/dev/stdin"],
            ["ops", "--supported", "/dev/stdin"],
            ["diff", "/dev/stdin", "/dev/stdin"],
        ]
        for command in self.commands() + without_limit:
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(command=command, signal=number):
                    process = subprocess.Popen(
                        [BINARY, *map(str, command)],
                        stdin=self.read,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE,
                        encoding="utf-8",
                    )
                    time.sleep(0.3)
                    process.send_signal(number)
                    _, err = process.communicate(timeout=20)
                    self.assertEqual(process.returncode, -number)
                    self.assertEqual(err, "interrupted: there is no answer yet\n")


class Outputs(Case):
    def test_a_full_disk_is_an_error(self):
        for command in (
            EXPLAIN,
            [*EXPLAIN, "--format", "json"],
            ["ops"],
            ["topologies"],
            ["solve", self.file("p.json", PROBLEM)],
            ["propagate", "--batch", self.file("l.jsonl", LINE)],
            ["--version"],
            ["explain", "--help"],
        ):
            with self.subTest(command[0]), open("/dev/full", "w") as full:
                done = shardprop(*command, stdout=full)
                self.refused(done, 2, "SP0002", "No space left", "standard output")

    def test_a_closed_pipe_is_an_error(self):
        read, write = os.pipe()
        os.close(read)
        done = shardprop("ops", stdout=write)
        os.close(write)
        self.refused(done, 2, "SP0002", "Broken pipe")

    def test_a_closed_standard_output_is_an_error(self):
        done = shardprop("ops", stdout=None, preexec_fn=lambda: os.close(1))
        self.refused(done, 2, "SP0002", "standard output", "-o FILE")
        # A closed stdout does not matter if the command writes no output there.
        out = self.folder / "out"
        done = shardprop("ops", "-o", out, stdout=None, preexec_fn=lambda: os.close(1))
        self.answered(done)
        self.assertIn("aten.mm.default", out.read_text())

    def test_a_file_is_replaced_whole_or_not_at_all(self):
        old = self.file("old.json", "the older plan")
        limit = (2048, 2048)
        done = shardprop(
            *EXPLAIN,
            "--format",
            "json",
            "-o",
            old,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        )
        self.refused(done, 2, "SP0002", "File too large")
        self.assertEqual(old.read_text(), "the older plan")
        self.assertEqual(os.listdir(self.folder), ["old.json"])
        self.refused(shardprop("explain", "nofile", "--mesh", "2", "-o", old), 3)
        self.assertEqual(old.read_text(), "the older plan")
        self.answered(shardprop(*EXPLAIN, "--format", "json", "-o", old))
        self.assertEqual(json.loads(old.read_text())["status"], "optimal")
        self.assertEqual(os.listdir(self.folder), ["old.json"])

    def test_modes_and_links_stay(self):
        old = self.file("old", "")
        old.chmod(0o640)
        link = self.folder / "link"
        link.symlink_to("old")
        self.answered(shardprop("ops", "-o", link))
        self.assertTrue(link.is_symlink())
        self.assertIn("aten.mm.default", old.read_text())
        self.assertEqual(old.stat().st_mode & 0o777, 0o640)
        mask = os.umask(0o027)
        self.answered(shardprop("ops", "-o", self.folder / "new"))
        os.umask(mask)
        self.assertEqual((self.folder / "new").stat().st_mode & 0o777, 0o640)
        self.answered(shardprop("ops", "-o", "/dev/null"))

    def test_places_that_cannot_be_written(self):
        for path, word in {
            self.folder: "Is a directory",
            self.folder / "none" / "x": "No such file or directory",
            "/dev/full": "No space left",
        }.items():
            with self.subTest(path):
                self.refused(shardprop("ops", "-o", path), 2, "SP0002", word)

    def test_each_answer_is_out_before_the_next_line_is_read(self):
        with subprocess.Popen(
            [BINARY, "propagate", "--batch", "/dev/stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as running:
            for _ in range(3):
                running.stdin.write(LINE)
                running.stdin.flush()
                self.assertEqual(
                    json.loads(running.stdout.readline())["op"], "aten.relu.default"
                )
            running.stdin.close()
            self.assertEqual(running.wait(), 0)

    def test_a_killed_batch_loses_no_answer(self):
        with subprocess.Popen(
            [BINARY, "propagate", "--batch", "/dev/stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as running:
            running.stdin.write(LINE + "x" * 10)
            running.stdin.flush()
            self.assertIn("outputs", running.stdout.readline())
            running.send_signal(signal.SIGKILL)
            self.assertEqual(running.stdout.read(), "")


class Words(Case):
    def test_commands_that_do_not_exist_are_named(self):
        for word in ("nope", "help", "explian"):
            self.refused(shardprop(word), 2, f"`{word}`")
        self.assertIn("did you mean `explain`?", shardprop("explian").stderr)
        self.assertIn("propagate", shardprop("nope").stderr)
        self.refused(shardprop("nope", "--help"), 2, "`nope`")
        self.refused(shardprop(), 2, "no command is given")


if __name__ == "__main__":
    command_line.main()
