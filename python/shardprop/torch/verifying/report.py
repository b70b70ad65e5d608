"""Report is the answer of verify(): the first wrong value, and what follows from it."""

import dataclasses
import textwrap
from typing import Optional

from .collectives import Call, Ran


@dataclasses.dataclass
class Value:
    """A Value is one compared value of the program."""

    #: parameter, buffer, input, output, output gradient, gradient, updated parameter,
    #: updated buffer, optimizer state, result or collective
    kind: str
    #: The module or parameter.
    name: str
    #: The place in a structure, such as "[0]"; empty for a tensor.
    path: str
    #: The number of the call, from 0.
    call: int
    #: "right", "wrong", or "not compared".
    status: str
    #: The layout in which the value is right, or in which a wrong one would be: one
    #: placement for each mesh dim.
    layout: "tuple[str, ...]" = ()
    #: The layout that the value should have; empty if every layout is accepted.
    expected: "tuple[str, ...]" = ()
    #: The value is this multiple of the right one.
    factor: float = 1.0
    #: The source line at which the value appears in the user's code.
    place: str = ""
    #: Sentences on a wrong value, or the reason why it was not compared.
    notes: "list[str]" = dataclasses.field(default_factory=list)
    #: The position in the program of the reference.
    order: float = 0.0
    #: Largest absolute error and its bound.
    error: float = 0.0
    bound: float = 0.0

    @property
    def title(self) -> str:
        if self.kind == "result":
            text = "result of step()" + (f" at `{self.path}`" if self.path else "")
        else:
            text = f"`{self.name or 'model'}{self.path}` {self.kind}"
        return text + (f" of call {self.call + 1}" if self.call else "")


def notes_on_waits(calls: "list[list[Call]]") -> "list[str]":
    """Returns a sentence on each collective for which some ranks never wait.

    `calls` are the collectives that each rank has not waited for.
    """
    by_text: "dict[str, list[str]]" = {}
    for rank, own in enumerate(calls):
        for call in own:
            ranks = by_text.setdefault(call.text(), [])
            if str(rank) not in ranks:
                ranks.append(str(rank))
    return [
        f"The program never waits for {text}, on rank {', '.join(ranks[:8])}. Its result "
        "may come after its use."
        for text, ranks in list(by_text.items())[:4]
    ]


def changed_values(calls: "list[list[Call]]") -> "list[Value]":
    """Returns a wrong value for each collective of which a rank changed a tensor between
    the call and the wait.

    `calls` are these collectives of each rank.
    """
    by_text: "dict[tuple[str, str, str], list[str]]" = {}
    for rank, own in enumerate(calls):
        for call in own:
            ranks = by_text.setdefault((call.text(), call.place, call.module), [])
            if str(rank) not in ranks:
                ranks.append(str(rank))
    return [
        Value("collective", module, "", 0, "wrong", place=place, order=-1, notes=[
            f"{text}: rank {', '.join(ranks[:8])} changes a tensor of it between the call "
            "and the wait. Which values are sent or kept depends on time."
        ])
        for (text, place, module), ranks in by_text.items()
    ]


@dataclasses.dataclass
class Report:
    """A Report is the result of comparing a parallel program with its reference.

    `str(report)` is the text for a reader. `report.ok` says that no value is wrong.
    """

    mesh: str
    #: All values in program order.
    values: "list[Value]"
    #: The collectives of each rank, in the order in which it called them.
    collectives: "list[list[Ran]]"
    notes: "list[str]" = dataclasses.field(default_factory=list)

    @property
    def wrong(self) -> "list[Value]":
        return [value for value in self.values if value.status == "wrong"]

    @property
    def first(self) -> Optional[Value]:
        """The first wrong value in program order, or None."""
        return next(iter(self.wrong), None)

    @property
    def compared(self) -> int:
        return sum(value.status != "not compared" for value in self.values)

    @property
    def ok(self) -> bool:
        return not self.wrong and self.compared > 0

    def layout(self, name: str, kind: str = "output") -> "tuple[str, ...]":
        """Returns the layout of a value by module or parameter, of its first call."""
        for value in self.values:
            if (value.name, value.kind) == (name, kind):
                return value.layout
        raise KeyError(f"no {kind} of `{name}` was compared")

    def __str__(self) -> str:
        head = f"verify on {self.mesh}: "
        left = len(self.values) - self.compared
        counts = f"{self.compared} values compared"
        if left:
            counts += f", {left} not compared"
        if self.first is None:
            verdict = "all right" if self.ok else "nothing compared"
            lines = [f"{head}{verdict}, {counts}"]
        else:
            lines = [f"{head}{len(self.wrong)} wrong, {counts}", ""]
            lines += self._first_lines()
        for note in self.notes:
            lines.append(textwrap.fill(
                f"note: {note}", 88, initial_indent="  ", subsequent_indent="    "
            ))
        return "\n".join(lines)

    def _first_lines(self) -> "list[str]":
        first = self.first
        assert first is not None
        lines = [f"first wrong value: {first.title}"]
        if first.place:
            lines.append(f"  --> {first.place}")
        lines += [
            textwrap.fill(note, 88, initial_indent="   |  ", subsequent_indent="   |  ")
            for note in first.notes
        ]
        later = self.wrong[1:]
        if later:
            names = ", ".join(value.title for value in later[:4])
            more = f" and {len(later) - 4} more" if len(later) > 4 else ""
            lines.append(textwrap.fill(
                f"wrong after it: {names}{more}", 88,
                initial_indent="  ", subsequent_indent="    ",
            ))
        return lines
