"""The ranks of a mesh agree here before any of them runs a program.

Ranks exchange texts through the store of the process group. This needs no device and no
group, and a failed rank sends its failure in place of its text. No rank therefore waits
in a collective for a rank that raised an error before it.
"""

import contextlib
import hashlib
import itertools
import json
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from .._error import Error
from ._groups import mesh_ranks, world_timeout

_BEAT_SECONDS = 1.0
# Pauses between two queries of the store. On 1,000 ranks it then answers 4,000 queries
# a second.
_LEAST_PAUSE_SECONDS = 0.005
_MOST_PAUSE_SECONDS = 0.25
# Stores refuse values of more than 8 MiB.
_PART_BYTES = 4 << 20
# The number of meetings of each set of ranks is the same on all of them.
_meetings: "dict[tuple[Any, ...], itertools.count[int]]" = {}


def _is_alone(device_mesh: Any) -> bool:
    """Returns whether no other rank answers: one rank, or a fake process group."""
    return device_mesh.size() == 1 or dist.get_backend() == "fake"


class _Meeting:
    """A meeting is one exchange of values among the ranks of a mesh, through the
    store."""

    def __init__(self, device_mesh: Any, what: str):
        self.ranks = mesh_ranks(device_mesh)
        self.rank = dist.get_rank()
        self._what = what
        self._store = distributed_c10d._get_default_store()
        self._timeout = world_timeout()
        # A new process group counts from 0.
        key = (dist.group.WORLD, *self.ranks)
        number = next(_meetings.setdefault(key, itertools.count()))
        ranks = hashlib.sha256(str(self.ranks).encode()).hexdigest()[:16]
        self._prefix = f"shardprop/{ranks}/{number}"

    @property
    def leads(self) -> bool:
        return self.rank == self.ranks[0]

    def put(self, name: str, value: Any) -> None:
        data = zlib.compress(json.dumps(value).encode(), 1)
        parts = range(0, len(data), _PART_BYTES)
        for number, begin in enumerate(parts):
            part = data[begin : begin + _PART_BYTES]
            self._store.set(f"{self._prefix}/{name}/{number}", part)
        # The count is written last: a rank that finds it finds every part.
        self._store.set(f"{self._prefix}/{name}", str(len(parts)))

    def take(self, name: str, rank: int) -> Any:
        """Returns the value that `rank` put. While that rank works, its beats extend
        the timeout."""
        try:
            return self._taken(f"{self._prefix}/{name}", rank)
        except RuntimeError as failure:
            raise Error(
                "SP0912",
                f"the store of the process group is gone, in {self._what}",
                f"rank {self.rank}",
                [str(failure).splitlines()[0][:300]],
                "the process that holds it ended: its error says why",
            ) from failure

    def _taken(self, key: str, rank: int) -> Any:
        seen, last = 0, time.monotonic()
        while not self._is_there(key):
            self._beat()
            beats = self._store.add(self._beats_of(rank), 0)
            if beats != seen:
                seen, last = beats, time.monotonic()
            elif time.monotonic() - last > self._timeout.total_seconds():
                raise self._late(rank)
        count = int(self._store.get(key))
        data = b"".join(self._store.get(f"{key}/{i}") for i in range(count))
        return json.loads(zlib.decompress(data))

    def _is_there(self, key: str) -> bool:
        """Waits for a key for at most a beat. The stores' own waits end in exceptions
        of several types."""
        pause, ends = _LEAST_PAUSE_SECONDS, time.monotonic() + _BEAT_SECONDS
        while not self._store.check([key]):
            if time.monotonic() > ends:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)
        return True

    def _beats_of(self, rank: int) -> str:
        return f"{self._prefix}/beats/{rank}"

    def _beat(self) -> None:
        self._store.add(self._beats_of(self.rank), 1)

    def _late(self, rank: int) -> Error:
        return Error(
            "SP0911",
            f"rank {rank} did not come to {self._what} in time",
            f"rank {self.rank}",
            [f"timeout of init_process_group(): {self._timeout}"],
            f"all ranks of the mesh call {self._what} together; an error of rank "
            f"{rank} says why it did not",
        )

    @contextlib.contextmanager
    def beating(self) -> "Iterator[None]":
        """Sends beats during the block, so that other ranks know that this rank
        works."""
        ended = threading.Event()

        def beat():
            while not ended.wait(_BEAT_SECONDS):
                try:
                    self._beat()
                except RuntimeError:  # the process with the store is gone
                    return

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _described(failure: BaseException) -> str:
    if isinstance(failure, Error):
        place = f" ({failure.place})" if failure.place else ""
        return f"[{failure.code}] {failure.message}{place}"
    return traceback.format_exception_only(failure)[-1].strip()


def _failed_there(what: str, failed: "dict[str, str]") -> Error:
    names = ", ".join(failed)
    return Error(
        "SP0912",
        f"{what} failed on rank{'s' if len(failed) > 1 else ''} {names}",
        what,
        [f"rank {rank}: {text}" for rank, text in list(failed.items())[:8]],
        "the error of that rank says what to do",
    )


def made_on_first(
    device_mesh: Any, what: str, make: "Callable[[], str]"
) -> str:
    """Returns on every rank what make() returns on the mesh's first rank. Its
    exception is raised on all ranks: the same Error, or one that describes it."""
    if _is_alone(device_mesh):
        return make()
    meeting = _Meeting(device_mesh, what)
    if meeting.leads:
        try:
            with meeting.beating():
                text = make()
                meeting.put("made", {"text": text})
        except BaseException as failure:
            is_error = isinstance(failure, Error)
            said = list(failure.args) if is_error else _described(failure)
            meeting.put("made", {"error" if is_error else "failed": said})
            raise
        return text
    first = meeting.ranks[0]
    told = meeting.take("made", first)
    if "error" in told:
        raise Error(*told["error"])
    if "failed" in told:
        raise _failed_there(what, {str(first): told["failed"]})
    return told["text"]


def agree(
    device_mesh: Any, what: str, prepare: "Callable[[], tuple[Any, dict[str, str]]]"
) -> Any:
    """Returns prepare()'s first result if its second is the same on all ranks.

    Raises on every rank if prepare() raised on one: its own exception there,
    SP0912 on the others. Raises SP0913 on every rank, with the ranks that differ,
    if results differ.
    """
    if _is_alone(device_mesh):
        return prepare()[0]
    meeting = _Meeting(device_mesh, what)
    failure = None
    try:
        with meeting.beating():
            result, told = prepare()
        report = {"told": told}
    except Exception as raised:
        failure, report = raised, {"failed": _described(raised)}
    meeting.put(f"of/{meeting.rank}", report)
    if meeting.leads:
        try:
            verdict = _verdict(meeting)
        except Error as late:
            meeting.put("verdict", {"late": list(late.args)})
            raise (failure or late) from None
        meeting.put("verdict", verdict)
    if failure is not None:
        raise failure
    if not meeting.leads:
        verdict = meeting.take("verdict", meeting.ranks[0])
    if "late" in verdict:
        raise Error(*verdict["late"])
    if verdict.get("failed"):
        raise _failed_there(what, verdict["failed"])
    if verdict.get("differ"):
        raise _differ(what, verdict["differ"])
    return result


def _verdict(meeting: _Meeting) -> "dict[str, Any]":
    """Returns the first rank's result: ranks that failed, or names whose texts
    differ."""
    failed, told = {}, {}
    for rank in meeting.ranks:
        found = meeting.take(f"of/{rank}", rank)
        if "failed" in found:
            failed[str(rank)] = found["failed"]
        else:
            told[rank] = found["told"]
    if failed:
        return {"failed": failed}
    differ = {}
    for name in told[meeting.ranks[0]]:
        by_text: "dict[str, list[int]]" = {}
        for rank, texts in told.items():
            by_text.setdefault(texts[name], []).append(rank)
        if len(by_text) > 1:
            differ[name] = sorted(by_text.items(), key=lambda one: -len(one[1]))
    return {"differ": differ}


def _differ(what: str, differ: "dict[str, list[tuple[str, list[int]]]]") -> Error:
    notes = []
    for name, groups in differ.items():
        for text, ranks in groups[:8]:
            notes.append(f"{name} {text}: {_ranks_text(ranks)}")
    return Error(
        "SP0913",
        f"the ranks have different {' and '.join(f'{name}s' for name in differ)}",
        what,
        notes,
        "make the plan on one rank: sp.torch.plan(exported, device_mesh) plans on "
        "the first and gives the plan to all; or load one file on all ranks",
    )


def _ranks_text(ranks: "list[int]") -> str:
    """"ranks 0..2, 5"."""
    runs: "list[list[int]]" = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    shown = [str(a) if a == b else f"{a}..{b}" for a, b in runs[:8]]
    if len(runs) > 8:
        shown.append("...")
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(shown)}"
