"""The exception of the package: an error of the library as it stands."""


class Error(Exception):
    """What an input of yours caused, with a stable code.

    >>> try: shardprop.plan(graph, "dp=0")
    ... except shardprop.Error as error: print(error.code, error.help)
    """

    code: str  # SP0103
    message: str  # one sentence
    place: str  # file, JSON path, option or node; may be empty
    notes: "list[str]"  # what the reader needs to see
    help: str  # what to do about it; may be empty

    def __init__(self, code, message, place="", notes=(), help=""):
        super().__init__(code, message, place, list(notes), help)
        self.code = code
        self.message = message
        self.place = place
        self.notes = list(notes)
        self.help = help

    def __str__(self):
        lines = [f"[{self.code}] {self.message}"]
        if self.place:
            lines.append(f"  --> {self.place}")
        lines += [f"   |  {note}" for note in self.notes]
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)
