"""Error is the exception of the package. It holds an error of the library unchanged."""

from collections.abc import Iterable


class Error(Exception):
    """An input of yours caused this error; it has a stable code.

    >>> try: shardprop.plan(graph, "dp=0")
    ... except shardprop.Error as error: print(error.code, error.help)
    """

    code: str  # SP0103
    message: str  # one sentence
    place: str  # file, JSON path, option or node; may be empty
    notes: "list[str]"  # what the reader needs to see
    help: str  # what to do about it; may be empty

    def __init__(
        self,
        code: str,
        message: str,
        place: str = "",
        notes: "Iterable[str]" = (),
        help: str = "",
    ) -> None:
        self.code = code
        self.message = message
        self.place = place
        self.notes = list(notes)
        self.help = help
        # Pickling and copying use these arguments.
        super().__init__(code, message, place, self.notes, help)

    def __str__(self) -> str:
        lines = [f"[{self.code}] {self.message}"]
        if self.place:
            lines.append(f"  --> {self.place}")
        lines += [f"   |  {note}" for note in self.notes]
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)
