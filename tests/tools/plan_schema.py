"""Validates plans against the published JSON Schema, closed: a key that the schema
does not know is a fault. Without the package jsonschema, nothing is validated."""

import functools
import json
import pathlib

import schema_predicate

try:
    import jsonschema
except ImportError:
    jsonschema = None

PATH = pathlib.Path(__file__).resolve().parents[2] / "docs/schema/plan-3.schema.json"
SCHEMA = json.loads(PATH.read_text())
NAME = SCHEMA["properties"]["schema"]["const"]


def closed(schema):
    """Returns the schema in which objects have no other keys than those it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: closed(part) for key, part in schema.items()}
    if out.get("type") == "object" and "properties" in out:
        out.setdefault("additionalProperties", False)
    return out


@functools.lru_cache(maxsize=None)
def validator():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(closed(SCHEMA))


@functools.lru_cache(maxsize=None)
def is_valid():
    return schema_predicate.predicate(closed(SCHEMA))


def faults(plan):
    """Returns the first faults of a plan as texts; empty if it is valid."""
    return [] if is_valid()(plan) else named_faults(plan)


def named_faults(plan):
    """Returns the faults that the package jsonschema finds."""
    out = []
    for error in validator().iter_errors(plan):
        while error.context:  # the alternative that comes nearest
            error = jsonschema.exceptions.best_match(error.context)
        place = "$" + "".join(
            f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.absolute_path
        )
        out.append(f"{place}: {error.message[:300]}")
        if len(out) == 5:
            break
    return out


def plan_in(text):
    """Returns the plan that a text is, or None."""
    if not text or NAME not in text[:200]:
        return None
    try:
        plan = json.loads(text)
    except ValueError:  # a test cut it off
        return None
    return plan if isinstance(plan, dict) and plan.get("schema") == NAME else None


def check_text(text):
    """Raises AssertionError if the text is a plan that the schema does not allow."""
    plan = plan_in(text) if jsonschema else None
    found = faults(plan) if plan is not None else []
    assert not found, "a written plan breaks its schema:\n  " + "\n  ".join(found)


def check_written(arguments):
    """Checks the plans that a command with `-o PATH` wrote."""
    arguments = [str(argument) for argument in arguments]
    if not jsonschema or "-o" not in arguments[:-1]:
        return
    path = pathlib.Path(arguments[arguments.index("-o") + 1])
    for file in (path, path / "plan.json"):
        if file.is_file():
            with open(file, "rb") as opened:
                head = opened.read(200)
                if NAME.encode() in head:
                    check_text((head + opened.read()).decode())


# --- which keys of the schema were seen -----------------------------------------------


def resolved(schema):
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def fits(schema, value):
    """Returns whether an alternative of the schema is the one of a valid value."""
    schema = resolved(schema)
    parts = schema.get("oneOf", schema.get("anyOf"))
    if parts:
        return any(fits(part, value) for part in parts)
    if schema.get("type") == "object":
        return (
            isinstance(value, dict)
            and all(key in value for key in schema["required"])
            and all(key in schema["properties"] for key in value)
            and all(
                part["const"] == value[key]
                for key, part in schema["properties"].items()
                if key in value and "const" in part
            )
        )
    return not isinstance(value, dict)


def keys_of(schema, where="$"):
    """Yields every key that the schema names, as a path. $defs begin a path."""
    for key, part in schema.get("properties", {}).items():
        yield f"{where}.{key}"
        yield from keys_of(part, f"{where}.{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from keys_of(schema[key], f"{where}[]")
    for key in ("oneOf", "anyOf"):
        for number, part in enumerate(schema.get(key, [])):
            yield from keys_of(part, f"{where}|{number}")
    for name, part in schema.get("$defs", {}).items():
        yield from keys_of(part, name)


def seen_in(value, schema=SCHEMA, where="$"):
    """Yields the keys of keys_of() that a valid value has."""
    if "$ref" in schema:
        where = schema["$ref"].rpartition("/")[2]
        schema = resolved(schema)
    for key in ("oneOf", "anyOf"):
        for number, part in enumerate(schema.get(key, [])):
            if fits(part, value):
                yield from seen_in(value, part, f"{where}|{number}")
    if isinstance(value, dict):
        rest = schema.get("additionalProperties")
        for key, inner in value.items():
            if key in schema.get("properties", {}):
                yield f"{where}.{key}"
                yield from seen_in(inner, schema["properties"][key], f"{where}.{key}")
            elif isinstance(rest, dict):
                yield from seen_in(inner, rest, f"{where}[]")
    elif isinstance(value, list) and "items" in schema:
        for inner in value:
            yield from seen_in(inner, schema["items"], f"{where}[]")
