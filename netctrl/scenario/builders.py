"""Short calls that build scenarios."""

from __future__ import annotations

from typing import Any

from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow


def bottleneck(**fields: Any) -> Scenario:
    """Build flows through one link, each from its own host.

    By default it has 100 Mbit/s, 20 ms, a buffer of 250 kB and one paced flow of packets of 1500 bytes, for 60 s.

    Parameters
    ----------
    **fields
        Fields of `Bottleneck` (capacity, buffer, queue, rtt, cross, start_spread) and of `Scenario`; `flows` are
        `Flow`, or dicts as in a file.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import bottleneck
    >>> scenario = bottleneck(capacity="20Mbit", flows=[{"sender": "bbr"}])
    >>> scenario.links[0].capacity, scenario.flows[0].sender
    (20000000.0, 'bbr')
    """
    words = {name: fields.pop(name) for name in Bottleneck.__struct_fields__ if name in fields}
    usual: dict[str, Any] = {"name": "bottleneck", "packet_size": 1500.0, "duration": 60.0, "warmup": 10.0}
    usual["flows"] = (Flow(id="flow", sender="paced"),)
    return Scenario(**usual | fields, network=Bottleneck(**words))
