"""Laws of active queue management on packets: the rows of the fluid, and each law's own step compiled into a kernel."""

from __future__ import annotations

from typing import Any

from netctrl.core.jit import INLINED, INSIDE, by_number, njit
from netctrl.laws.aqm.fluid import FIRST, on_rows
from netctrl.laws.aqm.records import LAWS
from netctrl.laws.record import compiled_view, width

act_on_packets = by_number(
    {number: on_rows(each, each.step, **INLINED) for number, each in enumerate(LAWS, 1)},
    "parameters, state, seen",
    **INSIDE,
)
"""The law of a number takes a step: `act_on_packets(number, parameters, state, seen)` sets the row of state.

One function, not in place of each call: the kernel, which enqueues packets in many places, stays small.
"""

_SPREADING = {
    number: on_rows(each, each.spreads, **INLINED) for number, each in enumerate(LAWS, 1) if each.spreads is not None
}
SPREADING = tuple(_SPREADING)
"""Numbers of laws that spread what they choose."""
spread_on_packets = by_number(_SPREADING, "parameters, state, packet", **INSIDE)
"""`QueueLaw.spreads` of the law of a number: `spread_on_packets(number, parameters, state, packet)` sets the row."""

_HEADS = {number: each for number, each in enumerate(LAWS, 1) if each.head is not None}
HEAD_STATES = max(width(each.head.state) for each in _HEADS.values() if each.head is not None)
"""Length of a row of state of a law that chooses at the head."""


def _of_head(law: Any) -> Any:
    """f(parameters, state, time, sojourn, alone) on rows."""
    places = ", ".join(f"parameters[{FIRST + k}]" for k in range(len(law.parameters._fields)))
    names = {
        "chooses": njit(law.head.chooses, **INLINED),
        "view": compiled_view(law.head.state),
        "Parameters": law.parameters,
    }
    call = f"chooses(view(state), time, sojourn, alone, Parameters({places}))"
    exec(f"def rows(parameters, state, time, sojourn, alone):\n    return {call}\n", names)
    return njit(names["rows"], **INLINED)


chooses_head = by_number(
    {number: _of_head(law) for number, law in _HEADS.items()},
    "parameters, state, time, sojourn, alone",
    otherwise="False",
    **INLINED,
)
"""Whether the law of a number takes the packet at the head:
`chooses_head(number, parameters, state, time, sojourn, alone)`; for laws that don't, False."""
