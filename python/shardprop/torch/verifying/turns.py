"""Turns runs one thread per rank and lets one thread run at a time.

A rank runs until it waits for another rank. The order of the ranks is therefore the
same in each run, and code that is not safe for threads runs correctly.
"""

import threading
from typing import Any, Callable, Optional

from ..._error import Error


class Stopped(BaseException):
    """Stopped ends the thread of a rank after another rank has failed.

    It is not an Exception, so that user code does not catch it.
    """


class _Rank:
    """A _Rank is the state of one thread."""

    def __init__(self) -> None:
        self.may_run = threading.Event()
        #: Returns whether the rank can continue; unset if it does not wait.
        self.ready: Optional[Callable[[], bool]] = None
        #: The reason of the wait, for the reader of an error.
        self.waits_for = ""
        self.finished = False
        self.failure: Optional[BaseException] = None


class Turns:
    """Turns is the set of the threads of all ranks of a simulation."""

    def __init__(
        self,
        size: int,
        enter: Callable[[int], None],
        leave: Callable[[int], None],
    ) -> None:
        """`enter(rank)` and `leave(rank)` run in the thread of a rank whenever it
        starts and stops to run."""
        self._ranks = [_Rank() for _ in range(size)]
        self._enter, self._leave = enter, leave
        self._stopped = False
        self._stuck: Optional[Error] = None

    def run(self, function: Callable[[int], Any]) -> "list[Any]":
        """Runs `function(rank)` on every rank and returns the results.

        Raises the exception of the first rank that failed, with the attribute
        `shardprop_rank`. Raises Error if all unfinished ranks wait for each other.
        """
        results: "list[Any]" = [None] * len(self._ranks)
        order: "list[int]" = []

        def body(rank: int) -> None:
            own = self._ranks[rank]
            own.may_run.wait()
            try:
                if not self._stopped:
                    self._enter(rank)
                    results[rank] = function(rank)
            except Stopped:
                pass
            except BaseException as failure:
                own.failure = failure
                order.append(rank)
                self._stop()
            finally:
                own.finished = True
                self._leave(rank)
                self._pass_on(rank)

        threads = [
            threading.Thread(target=body, args=(rank,), name=f"rank {rank}")
            for rank in range(len(self._ranks))
        ]
        for thread in threads:
            thread.start()
        self._ranks[0].may_run.set()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            # Ctrl-C ends the ranks at their next wait.
            self._stop()
            for thread in threads:
                thread.join()
            raise
        if order:
            failure = self._ranks[order[0]].failure
            assert failure is not None
            if not isinstance(failure, Error):
                failure.shardprop_rank = order[0]  # type: ignore[attr-defined]
            raise failure
        if self._stuck is not None:
            raise self._stuck
        return results

    def wait(self, rank: int, ready: Callable[[], bool], what: str) -> None:
        """Lets other ranks run until `ready()`; called in the thread of `rank`."""
        if self._stopped:
            raise Stopped
        if ready():
            return
        own = self._ranks[rank]
        own.ready, own.waits_for = ready, what
        own.may_run.clear()
        self._leave(rank)
        self._pass_on(rank)
        own.may_run.wait()
        own.ready = None
        self._enter(rank)
        if self._stopped:
            raise Stopped

    def _pass_on(self, rank: int) -> None:
        """Lets the next rank run that can."""
        size = len(self._ranks)
        if self._stopped:
            self._stop()
            return
        for step in range(1, size + 1):
            other = self._ranks[(rank + step) % size]
            if other.finished:
                continue
            if other.ready is None or other.ready():
                other.may_run.set()
                return
        waiting = [
            f"rank {index} waits for {own.waits_for}"
            for index, own in enumerate(self._ranks)
            if not own.finished
        ]
        if not waiting:
            return
        waiting += [
            f"rank {index} has ended"
            for index, own in enumerate(self._ranks)
            if own.finished
        ]
        self._stuck = Error(
            "SP0911",
            "the ranks wait for each other: this program would hang",
            "verify",
            waiting[:16],
            "each rank of a group must make the same collectives in the same order, "
            "and each receive needs its send",
        )
        self._stop()

    def _stop(self) -> None:
        self._stopped = True
        for own in self._ranks:
            own.may_run.set()
