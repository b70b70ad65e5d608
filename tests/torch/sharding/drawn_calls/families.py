"""Maps families of operators to the functions that sample their arguments.

    @family("mm")
    def mm(d):              # a Drawer; what it leaves out the schema completes
        return {"self": d.tensor((m, k)), "mat2": d.tensor((k, n))}

The same function samples the in-place and `out=` overloads.
"""

_FAMILIES = {}


def family(*bases):
    def register(function):
        for base in bases:
            if base in _FAMILIES:
                raise ValueError(f"{base} has two families")
            _FAMILIES[base] = function
        return function

    return register


def family_of(base):
    """Returns the function that samples aten.<base>.*, or None: then every
    argument is sampled from the schema."""
    for name in (base, base.removesuffix("_"), base.removesuffix("_copy")):
        if name in _FAMILIES:
            return _FAMILIES[name]
    return None
