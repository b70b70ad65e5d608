"""Proves one operator on sampled calls: asks, runs, compares."""

import random
import time
from typing import NamedTuple

import torch

from . import capture
from .ask import ask
from .drawn_calls import draw_calls
from .failure_classes import class_of
from .kernel_quirks import quirk_of
from .proof import prove
from .shardings import every_sharding, is_unusual
from .words import in_short, in_words

_LIMIT = 20_000  # strategies of one answer
# These refusals do not concern the call: this build lacks a kernel.
_NOT_OF_THE_CALL = ("not implemented for", "NotImplementedError")


class Settings(NamedTuple):
    binary: str
    metas: str | None
    calls: int
    meshes: tuple
    meshes_per_call: int
    sample: int
    seed: str
    shardings: bool = False  # all orders and strides of factors, and only those


class Failure(NamedTuple):
    kind: str  # strategy, shape, dtype, strides, died, proof
    letter: str  # of failure_classes
    text: str
    line: dict  # what to ask for it again, and the values


# Every strategy of a call is run on these; on others a sample.
EXHAUSTIVE = ((2,), (3,))
_MOST_DRAWS = 8


class Result:
    """Of one operator."""

    def __init__(self, op):
        self.op = op
        self.calls = self.answers = self.pairs = self.quirks = 0
        self.skipped = 0  # strategies that were not chosen
        self.strides_compared = 0
        self.seconds = 0.0
        self.failures = []
        self.we_refuse = []  # (call, why)
        self.we_answer = []  # (call, why PyTorch does not)

    def note(self, kind, drawn, mesh, strategy, why):
        call = drawn.call
        letter = class_of(call, strategy, why, drawn.inputs)
        where = "" if mesh is None else f" on {list(mesh)}"
        what = "" if strategy is None else f": {in_words(strategy)}"
        line = capture.batch_line(call, mesh or (2,), outputs=False)
        line["why"] = why
        line["values"] = [tensor.tolist() for tensor in drawn.inputs]
        if strategy is not None:
            line["strategy"] = in_words(strategy)
        line["class"] = letter
        text = f"{in_short(call)}{where}{what}\n    {why}"
        self.failures.append(Failure(kind, letter, text, line))


def propagate_command(binary):
    limit = ["--limit", str(_LIMIT)]
    return [binary, "propagate", "--all", "--strided", *limit, "--batch"]


# Composites, which torch does not tag.
_SIZED_BY_DATA = (
    "aten.where.default",
    "aten.nonzero_numpy.default",
    "aten.tensor_split.tensor_indices_or_sections",
)


def _significant(meta, strides):
    """Strides of dims that have several indices; none of an empty tensor."""
    if 0 in meta.shape:
        return ()
    return tuple(s for n, s in zip(meta.shape, strides, strict=True) if n > 1)


def _fake_outputs(drawn):
    """The outputs as an exporter sees them: some kernels choose other strides."""
    call = drawn.call
    fakes = [
        torch.empty_strided(
            meta.shape, meta.strides, dtype=capture.TORCH_DTYPES[meta.dtype], device="meta"
        )
        for meta in call.inputs
    ]
    try:
        args = capture.arguments_of(call, fakes)
        results = capture.torch_op(call.op)(**args)
    except Exception:  # noqa: BLE001  (no kernel for shapes alone)
        return []
    return [capture.meta_of(t) for t in capture.flat_tensors(results)]


def _compare_metas(result, drawn, mesh, claimed):
    """Compares the shapes, dtypes and (if they are given) strides of the
    outputs."""
    wanted = drawn.call.outputs
    if len(claimed) != len(wanted):
        why = f"{len(claimed)} outputs are claimed, there are {len(wanted)}"
        result.note("shape", drawn, mesh, None, why)
        return
    for o, (meta, said) in enumerate(zip(wanted, claimed, strict=True)):
        if tuple(said["shape"]) != meta.shape:
            why = (
                f"output {o} is said to have shape {said['shape']}, not "
                f"{list(meta.shape)}"
            )
            result.note("shape", drawn, mesh, None, why)
        elif said["dtype"] != meta.dtype:
            why = f"output {o} is said to be {said['dtype']}, not {meta.dtype}"
            result.note("dtype", drawn, mesh, None, why)
        elif "strides" in said:
            result.strides_compared += 1
            found = _significant(meta, said["strides"])
            known = [
                meta.strides,
                *(m.strides for m in _fake_outputs(drawn)[o : o + 1]),
            ]
            if all(found != _significant(meta, strides) for strides in known):
                why = (
                    f"output {o} is said to have strides {said['strides']}, not "
                    f"{list(meta.strides)}"
                )
                result.note("strides", drawn, mesh, None, why)


def _is_sized_by_data(op):
    """Returns whether shapes of results depend on values. The question then has
    to state the outputs."""
    if op in _SIZED_BY_DATA:
        return True
    namespace, base, _ = op.split(".")
    packet = getattr(getattr(torch.ops, namespace), base)
    return any(
        torch.Tag.dynamic_output_shape in getattr(packet, name).tags
        for name in packet.overloads()
    )


def _placed(call, mesh, shardings=None):
    """The question with all operands replicated: the answer tells the outputs."""
    sized_by_data = _is_sized_by_data(call.op)
    replicated = ["R"] * len(mesh)
    return capture.batch_line(
        call,
        mesh,
        outputs=sized_by_data,
        placements=replicated,
        shardings=shardings,
    )


def check_strides(result, metas, drawn):
    """Asks the tool `metas` for the strides of every call."""
    questions = [_placed(one.call, (2,)) for one in drawn]
    for one, answer in zip(drawn, ask([metas], questions), strict=True):
        if "outputs" in answer:
            _compare_metas(result, one, None, answer["outputs"])


def _stratum(strategy):
    """Returns for each mesh dim "P" if an operand is partial on it, "S" if one
    is sharded, and "R" otherwise."""
    layouts = [*strategy["inputs"], *strategy["outputs"]]
    return tuple(
        "P" if any(p.startswith("P") for p in dim)
        else "S" if any(p.startswith("S") for p in dim) else "R"
        for dim in zip(*layouts, strict=True)
    )  # fmt: skip


def stratified(strategies, count, rng):
    """Returns `count` strategies, from every stratum in turn."""
    strata = {}
    for strategy in rng.sample(strategies, len(strategies)):
        strata.setdefault(_stratum(strategy), []).append(strategy)
    turns = [strata[key] for key in sorted(strata)]
    chosen = []
    while len(chosen) < count:
        turns = [stratum for stratum in turns if stratum]
        for stratum in turns[: count - len(chosen)]:
            chosen.append(stratum.pop())
    return chosen


def _all(strategies, _mesh):
    return strategies


def check_calls(result, command, asked, *, choose=_all, seeds=(0,), shardings=None):
    """Asks for every call on its mesh and runs the strategies of the answer:
    all of them, or the subset that `choose` returns. `shardings(mesh)` are factor
    shardings that the strategies may have."""
    questions = [
        _placed(one.call, mesh, shardings and shardings(mesh)) for one, mesh in asked
    ]
    refused = set()
    for (one, mesh), answer in zip(asked, ask(command, questions), strict=True):
        if "died" in answer:
            result.note("died", one, mesh, None, f"died: {answer['died']}")
            continue
        if "strategies" not in answer:
            if one.call not in refused:
                refused.add(one.call)
                error = answer.get("error", {})
                why = f"{error.get('code')}: {error.get('message')}"
                result.we_refuse.append((one.call, why))
            continue
        result.answers += 1
        _compare_metas(result, one, mesh, answer["outputs"])
        offered = answer["strategies"]
        chosen = [(mesh, strategy) for strategy in choose(offered, mesh)]
        result.pairs += len(chosen)
        result.skipped += len(offered) - len(chosen)
        wrong = {}
        for seed in seeds:
            for where, strategy, why in prove(one.call, chosen, seed, list(one.inputs)):
                wrong.setdefault(repr(strategy), (where, strategy, why))
        for where, strategy, why in wrong.values():
            result.note("strategy", one, where, strategy, why)


def _ask_refused(result, settings, refused):
    """Reports the calls that PyTorch refuses and we answer."""
    told = [
        (call, why)
        for call, why in refused
        if not any(part in why for part in _NOT_OF_THE_CALL)
    ]
    questions = [_placed(call, (2,)) for call, _ in told]
    for (call, why), answer in zip(
        told, ask(propagate_command(settings.binary), questions), strict=True
    ):
        if answer.get("strategies"):
            result.we_answer.append((call, why))


def dead(op, why):
    """The result of an operator whose proof died: a kernel of PyTorch did."""
    result = Result(op)
    text = f"{op}: the proof itself ended: {why}"
    result.failures.append(Failure("proof", "other", text, {"op": op, "why": why}))
    return result


def prove_operator(op, settings):
    """A Result."""
    start = time.monotonic()
    result = Result(op)
    rng = random.Random(f"{op} {settings.seed}")
    # A few samples may all be calls with a kernel quirk; then the test samples
    # more.
    for again in range(_MOST_DRAWS):
        seed = f"{settings.seed} {again}" if again else settings.seed
        calls = draw_calls(op, count=settings.calls, seed=seed)
        drawn = [one for one in calls.valid if quirk_of(one.call) is None]
        result.quirks += len(calls.valid) - len(drawn)
        if drawn:
            break
    result.calls = len(drawn)
    asked = [
        (one, mesh)
        for one in drawn
        for mesh in rng.sample(settings.meshes, settings.meshes_per_call)
    ]

    def choose(strategies, mesh):
        if settings.shardings:
            strategies = list(filter(is_unusual, strategies))
        if mesh in EXHAUSTIVE or len(strategies) <= settings.sample:
            return strategies
        return stratified(strategies, settings.sample, rng)

    check_calls(
        result,
        propagate_command(settings.binary),
        asked,
        choose=choose,
        shardings=every_sharding if settings.shardings else None,
    )
    if settings.metas:
        check_strides(result, settings.metas, drawn)
    _ask_refused(result, settings, calls.refused)
    result.seconds = time.monotonic() - start
    return result
