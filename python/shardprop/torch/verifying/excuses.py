"""excuse() takes wrong values back that the program itself corrects, and
check_rows_of_results() finds results whose rows the program has moved."""

from .keys import AFTER, FINAL, FORWARD, WITHIN
from .report import Value


def excuse(values: "list[Value]") -> None:
    """Sets wrong values that the program itself corrects to "not compared".

    A module within a parallel implementation may compute values that no layout has,
    such as the embeddings of masked words. An enclosing module whose output is right
    shows that they are right.
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


def check_rows_of_results(values: "list[Value]") -> None:
    """Makes a result wrong if its rows have another order and those of the modules do
    not, as after a gather of the wrong parts.

    A program that shards tokens in another order, as balanced context parallelism does,
    has modules with rows in this order.
    """
    modules = [value for value in values if value.kind in FORWARD - {"value"}]
    if not modules or any(_has_rows(value) for value in modules):
        return
    for value in values:
        if value.kind == "result" and value.status == "right" and _has_rows(value):
            value.status = "wrong"
            value.notes.append(
                "The ranks hold rows in another order, and no module has this order."
            )


def _has_rows(value: Value) -> bool:
    return any(placement.startswith("rows") for placement in value.layout)


def _is_inside(name: str, other: str) -> bool:
    return name != other and (not other or name.startswith(f"{other}."))
