"""Operator calls drawn for the proof: any overload that torch's schemas hold.

    for call in draw_calls("aten.gather.default", count=20, seed=0).valid: ...

A family draws what its operators need to fit (families); the rest is drawn from
the schema by type and name (arguments). torch decides what is a call: what it
refuses is kept apart.
"""

from .draw import Drawn, DrawnCalls, draw_calls

__all__ = ["Drawn", "DrawnCalls", "draw_calls"]
