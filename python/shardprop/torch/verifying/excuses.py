"""excuse() takes wrong values back that the program itself corrects."""

from .keys import AFTER, FINAL, WITHIN
from .report import Value


def excuse(values: "list[Value]") -> None:
    """Sets wrong values that the program itself corrects to "not compared".

    A module within a parallel implementation may compute values that no layout has,
    such as the embeddings of masked words. An enclosing module whose output is right
    shows that they are no mistake.
    """
    results = [value for value in values if value.kind in FINAL]
    follows = any(value.kind in AFTER for value in values)
    if follows and results and all(value.status != "wrong" for value in results):
        wrong = [value for value in values if value.kind in WITHIN]
    else:
        right = {
            value.name
            for value in values
            if value.kind == "output" and value.status == "right"
        } - {
            value.name
            for value in values
            if value.kind == "output" and value.status == "wrong"
        }
        wrong = [
            value
            for value in values
            if value.kind in ("input", "output")
            and any(_is_inside(value.name, name) for name in right)
        ]
    for value in wrong:
        if value.status == "wrong":
            value.status = "not compared"
            value.notes = [
                "No layout makes it right, but what follows from it is right."
            ]


def _is_inside(name: str, other: str) -> bool:
    return name != other and (not other or name.startswith(f"{other}."))
