"""Samples operator calls for the proof: any overload that torch's schemas have.

    for call in draw_calls("aten.gather.default", count=20, seed=0).valid: ...

A family samples the arguments that must fit its operators (families); the
others are sampled from the schema by type and name (arguments). torch decides
which calls are valid; refused calls are returned separately.
"""

from .draw import Drawn, DrawnCalls, draw_calls

__all__ = ["Drawn", "DrawnCalls", "draw_calls"]
