"""Tests real graphs, plans, lines, topologies and contest problems that are
damaged at random. For every mutant the command line must answer or refuse as
its contract specifies. It must not end by a signal, exit 70 or a wrong exit
status, hang, or take memory out of proportion.

  test_mutants.py BINARY [--count N] [--seed S] [--only KIND]

SHARDPROP_FULL=1 takes 20,000 mutants instead of 300, SHARDPROP_SEED others. A
mutant is made by seed, kind and number alone: `--only KIND --number N --keep FILE`
makes one again.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import zlib

import command_line
from command_line import MLP, ROOT, SANITIZED, TINY, complaints

LIMIT_S = 10  # beyond the time that the search is given
SEARCH_S = 1
MIB = 1 << 20

# Small ones: what damage does to a reader does not depend on the size.
GRAPHS = ["mlp_dynamic", "block_composite", "llama3_infer", "vit_infer"]
FIXTURES = ["composite.json", "flat.pt2", "mlp.json", "rooted.pt2", "writes.json"]


def odd_values(rng):
    """A value that its place most likely does not want."""
    return rng.choice(
        [
            lambda: None,
            lambda: True,
            lambda: rng.choice([0, -1, 1, 2, 7, 64, 65, 4096]),
            lambda: rng.choice([2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]),
            lambda: rng.choice([2**63, 2**64, -(2**63) - 1, 10**30]),
            lambda: rng.choice([0.5, -0.0, 1e300, 1e-300, float("nan"), float("inf")]),
            lambda: rng.choice(["", "x", "R", "S(0)", "S(-1)", "P(sum)", "\x1b[31m\n"]),
            lambda: "x" * rng.choice([100, 10_000]),
            lambda: [],
            lambda: {},
            lambda: [1, "a", None],
            lambda: json.loads("[" * 150 + "]" * 150),
            lambda: {"as_int": rng.choice([-1, 0, 2**40])},
            lambda: {"as_name": "x"},
        ]
    )()


def places(tree, limit=20_000):
    """(container, key) of the values in a JSON tree."""
    found, open_ = [], [tree]
    while open_ and len(found) < limit:
        node = open_.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            found.append((node, key))
            if isinstance(value, (dict, list)):
                open_.append(value)
    return found


def shift_values(text, rng):
    """Returns JSON with a few values replaced by others of their type from the
    same text. Most of it can be read, and the errors show later."""
    tree = json.loads(text)
    leaves = [(n, k) for n, k in places(tree) if not isinstance(n[k], (dict, list))]
    for _ in range(rng.randint(1, 2) if leaves else 0):
        node, key = rng.choice(leaves)
        value = node[key]
        if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.6:
            node[key] = rng.choice([value + 1, value - 1, value * 2, 0, 1, 3])
            continue
        alike = [n[k] for n, k in leaves if type(n[k]) is type(value)]
        node[key] = rng.choice(alike)
    return json.dumps(tree).encode()


def mutate_tree(text, rng):
    """JSON with one to three values changed, removed, renamed or swapped."""
    tree = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        all_places = places(tree)
        if not all_places:
            break
        node, key = rng.choice(all_places)
        action = rng.randrange(6)
        if action <= 2:
            node[key] = odd_values(rng)
        elif action == 3:
            del node[key]
        elif action == 4:
            other, at = rng.choice(all_places)
            try:
                node[key], other[at] = other[at], node[key]
                json.dumps(tree)
            except (KeyError, IndexError, ValueError):  # gone, or a circle
                tree = json.loads(text)
        elif isinstance(node, dict):
            node[rng.choice(["x", key + "s", key.upper(), ""])] = node.pop(key)
        else:
            node.insert(key, node[key])
    text = json.dumps(tree)
    if rng.random() < 0.1:  # a doubled key
        spots = [m.start() for m in re.finditer(r'"\w+": ', text)]
        if spots:
            spot = rng.choice(spots)
            key = text[spot : text.index(": ", spot)]
            text = text[:spot] + key + ": 1, " + text[spot:]
    return text.encode()


def mutate_bytes(data, rng):
    """Bytes changed, removed, doubled, or cut off."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        at = rng.randrange(len(data))
        action = rng.randrange(5)
        if action == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            data[at] = rng.choice(b'\x00\xff\x1b{}[]",:-0e.\n')
        elif action == 2:
            del data[at : at + rng.randint(1, 20)]
        elif action == 3:
            piece = data[at : at + rng.randint(1, 50)]
            data[at:at] = piece * rng.randint(1, 5)
        else:
            del data[at:]
    return bytes(data)


def either(data, rng):
    way = rng.random()
    if way < 0.5:
        return shift_values(data, rng)
    if way < 0.8:
        return mutate_tree(data, rng)
    return mutate_bytes(data, rng)


class Kind:
    """A kind of file: its unharmed samples and the command that reads one."""

    def __init__(self, folder):
        self.folder = folder
        self.samples = self.make_samples()

    def command(self, path):
        raise NotImplementedError

    def check(self, done, mutant):
        """Returns further faults; the mutant is the content of the file."""
        return []


class GraphKind(Kind):
    def make_samples(self):
        made = [("x.json.gz", (TINY / f"{g}.json.gz").read_bytes()) for g in GRAPHS]
        for name in FIXTURES:
            made.append((name, (ROOT / "tests/fuzz/pt2" / name).read_bytes()))
        return made

    def mutate(self, rng):
        name, data = rng.choice(self.samples)
        if name.endswith(".pt2") or rng.random() < 0.1:
            return name, mutate_bytes(data, rng)
        if name.endswith(".gz"):
            data = gzip.decompress(data)
        return "x.json", either(data, rng)

    def command(self, path):
        """Mostly the plan, else one of its operators."""
        options = ["--mesh", "2", "--time-limit", str(SEARCH_S)]
        data = path.read_bytes()
        names = re.findall(rb'"outputs": ?\[\{"as_tensor": ?\{"name": ?"(\w+)"', data)
        if names and zlib.crc32(data) % 32 == 0:
            node = names[zlib.crc32(data) // 32 % len(names)].decode()
            return ["why", path, node, *options]
        return ["explain", path, *options]


class PlanKind(Kind):
    def make_samples(self):
        done = command_line.shardprop(
            "explain", MLP, "--mesh", "dp=2,tp=2", "--format", "json"
        )
        # Mutants are the same in each run only if the plan's bytes are.
        plan = re.sub(r'("solve_seconds": )[0-9.e-]+', r"\g<1>0.5", done.stdout)
        return [("plan.json", plan.encode())]

    def mutate(self, rng):
        name, data = rng.choice(self.samples)
        return name, either(data, rng)

    def command(self, path):
        """Returns a command that reads a plan; the mutant's bytes select it."""
        whole = self.folder / "whole.json"
        if not whole.exists():
            whole.write_bytes(self.samples[0][1])
        emit = ["emit", MLP, "--plan", path, "-o", self.folder / "emitted"]
        commands = [
            ["explain", MLP, "--plan", path],
            ["verify", MLP, "--plan", path],
            emit,
            [*emit, "--as", "jax"],
            ["explain", MLP, "--plan", path, "--format", "html"],
            ["explain", MLP, "--plan", path, "--format", "dot"],
            ["explain", MLP, "--plan", path, "--format", "perfetto"],
            ["diff", whole, path],
        ]
        return commands[zlib.crc32(path.read_bytes()) % len(commands)]


class LineKind(Kind):
    def make_samples(self):
        folder = ROOT / "tests/fuzz/lines"
        return [(p.name, p.read_bytes()) for p in sorted(folder.iterdir())]

    def mutate(self, rng):
        lines = []
        for _ in range(5):
            _, data = rng.choice(self.samples)
            try:
                line = either(data, rng)
            except ValueError:  # a sample that is no JSON
                line = mutate_bytes(data, rng)
            lines.append(line.replace(b"\n", b" "))
        return "lines.jsonl", b"\n".join(lines)

    def command(self, path):
        return ["propagate", "--batch", path, "--all", "--limit", "200"]

    def check(self, done, mutant):
        wanted = [x for x in mutant.split(b"\n") if x.strip(b" \t\r")]
        answers = done.stdout.splitlines()
        if len(answers) != len(wanted):
            return [f"{len(answers)} answers to {len(wanted)} lines"]
        wrong = []
        for answer in map(json.loads, answers):
            error = answer.get("error")
            if error is None:
                continue
            if not error.get("message") or not error["location"].startswith("line "):
                wrong.append(f"an error without message or place: {error}")
        return wrong


class TopologyKind(Kind):
    def make_samples(self):
        folder = ROOT / "tests/fuzz/topology"
        return [(p.name, p.read_bytes()) for p in sorted(folder.iterdir())]

    def mutate(self, rng):
        name, data = rng.choice(self.samples)
        if rng.random() < 0.5:
            value = rng.choice(
                "0 -1 1e300 1e-300 nan inf 'x' [] true 1e18 0.5 1.5 2 100 1e-9".split()
            )
            text = re.sub(
                rb"= *[0-9.e+]+", b"= " + value.encode(), data, count=rng.randint(1, 3)
            )
            if text != data:
                return name, text
        return name, mutate_bytes(data, rng)

    def command(self, path):
        return ["explain", MLP, "--mesh", "2", "--topology", path]


class ContestKind(Kind):
    def make_samples(self):
        folder = ROOT / "tests/fuzz/contest"
        return [(p.name, p.read_bytes()) for p in sorted(folder.iterdir())]

    def mutate(self, rng):
        name, data = rng.choice(self.samples)
        return name, either(data, rng)

    def command(self, path):
        return ["solve", path, "--format", "json", "--time-limit", str(SEARCH_S)]

    def check(self, done, mutant):
        if done.returncode == 3:
            return []
        answer = json.loads(done.stdout)
        if (done.returncode == 0) != (answer["cost"] is not None):
            return ["the exit status does not say whether there is a plan"]
        return []


KINDS = {
    "graph": (GraphKind, 0.35),
    "plan": (PlanKind, 0.2),
    "line": (LineKind, 0.2),
    "topology": (TopologyKind, 0.1),
    "contest": (ContestKind, 0.15),
}


def json_size(name, data):
    """Returns the size of the JSON in a file, in bytes."""
    if data[:2] == b"\x1f\x8b":
        try:
            return len(gzip.decompress(data))
        except (OSError, EOFError, ValueError, zlib.error):
            return 4 * len(data)
    return len(data)


def run(binary, arguments, folder):
    """How it ended, after how long, and the most memory it took."""
    out, err = folder / "out", folder / "err"
    began = time.monotonic()
    with open(out, "wb") as out_file, open(err, "wb") as err_file:
        running = subprocess.Popen(
            [binary, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
            env={"NO_COLOR": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
        )
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    done = subprocess.CompletedProcess(
        arguments,
        running.returncode,
        out.read_bytes().decode("utf-8", "replace"),
        err.read_bytes().decode("utf-8", "replace"),
    )
    return done, time.monotonic() - began, usage.ru_maxrss * 1024


def mutant_of(kind, seed, number):
    rng = random.Random(f"{seed}/{type(kind).__name__}/{number}")
    return kind.mutate(rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    full = os.environ.get("SHARDPROP_FULL") == "1"
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=20_000 if full else 300)
    seed = int(os.environ.get("SHARDPROP_SEED", "14"))
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--number", type=int)
    parser.add_argument("--keep", help="write the mutant of --number there and stop")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    command_line.BINARY = binary
    os.chdir(ROOT)

    wrong = 0
    ends = collections.Counter()
    slowest, hungriest = 0.0, 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind_name, (make, share) in KINDS.items():
            if options.only not in (None, kind_name):
                continue
            kind = make(folder)
            numbers = range(int(options.count * share))
            if options.number is not None:
                numbers = [options.number]
            for number in numbers:
                file_name, data = mutant_of(kind, options.seed, number)
                if options.keep:
                    pathlib.Path(options.keep).write_bytes(data)
                    return 0
                path = folder / file_name
                path.write_bytes(data)
                done, seconds, memory = run(binary, kind.command(path), folder)
                if seconds > SEARCH_S + LIMIT_S:  # or others had the machine
                    done, seconds, memory = run(binary, kind.command(path), folder)
                ends[kind_name, done.returncode] += 1
                slowest = max(slowest, seconds)
                allowed_memory = 64 * MIB + 10 * json_size(file_name, data)
                hungriest = max(hungriest, memory / allowed_memory)
                # A node that the graph does not have is of the command line.
                bad = complaints(
                    done, (0, 1, 2, 3) if done.args[0] == "why" else (0, 1, 3)
                )
                if not bad:
                    bad += kind.check(done, data)
                if seconds > SEARCH_S + LIMIT_S:
                    bad.append(f"took {seconds:.1f} s")
                if memory > allowed_memory and not SANITIZED:
                    bad.append(f"took {memory / MIB:.0f} MiB")
                if not bad:
                    continue
                wrong += 1
                print(f"{kind_name} mutant {number}: {'; '.join(bad)}")
                print("  " + done.stderr[:300].replace("\n", "\n  "))
                if wrong >= 20:
                    break
    for (kind_name, status), count in sorted(ends.items()):
        print(f"{kind_name:<10} exit {status}: {count}")
    print(
        f"seed {options.seed}: {sum(ends.values())} mutants, {wrong} wrong; slowest "
        f"{slowest:.1f} s, most memory {hungriest:.2f} of what is allowed"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
