"""With a work limit the answer hangs on the problem and the seed alone: the same
bytes, but for times, on any number of threads.

  test_same_answer.py BINARY
"""

import json
import random
import re
import sys

import command_line
from command_line import FULL, TINY, Case, shardprop

# The last is the default, one thread per core.
THREADS = (1, 2, 3, 8, None) if FULL else (1, 3, None)
SECONDS = re.compile(r'"solve_seconds": ?[0-9.e+-]+')


def contest(seed, nodes, choices, edges_each, tightness):
    """A made-up contest problem: lifetimes that overlap, edges between near ones."""
    rng = random.Random(seed)
    intervals, costs, usages = [], [], []
    for v in range(nodes):
        k = rng.randint(2, choices)
        intervals.append([v, v + rng.randint(1, 30)])
        costs.append([rng.randint(0, 1000) for _ in range(k)])
        usages.append(sorted((rng.randint(1, 1000) for _ in range(k)), reverse=True))
    pairs, tables = [], []
    for v in range(1, nodes):
        for u in {max(0, v - rng.randint(1, 12)) for _ in range(edges_each)}:
            pairs.append([u, v])
            tables.append(
                [
                    rng.choice([0, rng.randint(0, 800), 10**18])
                    if rng.random() < 0.3
                    else rng.randint(0, 800)
                    for _ in range(len(costs[u]) * len(costs[v]))
                ]
            )
    live = [0] * (nodes + 40)
    for (lo, hi), use in zip(intervals, usages):
        for t in range(lo, hi):
            live[t] += min(use)
    return json.dumps(
        {
            "problem": {
                "name": f"made-up {seed}",
                "nodes": {"intervals": intervals, "costs": costs, "usages": usages},
                "edges": {"nodes": pairs, "costs": tables},
                "usage_limit": int(max(live) * tightness),
            }
        }
    )


class SameAnswer(Case):
    def same(self, *arguments):
        answers = []
        for threads in THREADS:
            more = () if threads is None else ("--threads", threads)
            done = shardprop(*arguments, *more)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            answers.append(SECONDS.sub('"solve_seconds": 0', done.stdout))
        for threads, answer in zip(THREADS[1:], answers[1:]):
            self.assertEqual(answers[0], answer, f"{arguments}: {threads} threads")
        return json.loads(answers[0])

    def test_contest_problems(self):
        for seed, nodes, choices, tightness in (
            (1, 60, 6, 1.1),
            (2, 300, 8, 1.1),
            (3, 300, 12, 1.3),
            (4, 800, 6, 2.0),
        ):
            file = self.file("p.json", contest(seed, nodes, choices, 2, tightness))
            self.same(
                "solve", file, "--format", "json", "--work-limit", 30_000_000
            )

    def test_graphs(self):
        for graph, mesh, more in (
            ("mlp_dynamic", "2,2", ()),
            ("gpt2_train_cuda", "2,2", ()),
            ("llama3_train", "2,2", ("--optimizer", "adamw", "--memory", "300KiB")),
            ("mixtral_infer", "2,2,2", ()),
        ):
            plan = self.same(
                "explain",
                TINY / f"{graph}.json.gz",
                "--mesh",
                mesh,
                "--format",
                "json",
                "--gap",
                0,
                "--work-limit",
                3_000_000,
                *more,
            )
            self.assertIn(plan["status"], ("optimal", "feasible", "unknown", "infeasible"))

    def test_more_work_makes_no_dearer_plan(self):
        costs = []
        for work in (0, 1, 1_000, 100_000, 10_000_000):
            done = shardprop("explain", TINY / "llama3_train.json.gz", "--mesh", "2,2",
                             "--format", "json", "--gap", 0, "--work-limit", work)
            self.answered(done)
            costs.append(json.loads(done.stdout)["objective_us"])
        self.assertEqual(costs, sorted(costs, reverse=True))

    def test_a_limit_of_nothing(self):
        self.same(
            "explain",
            TINY / "vit_infer.json.gz",
            "--mesh",
            "2,4",
            "--format",
            "json",
            "--work-limit",
            0,
        )


if __name__ == "__main__":
    command_line.BINARY = command_line.BINARY or sys.argv[1]
    command_line.main()
