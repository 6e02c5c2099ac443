"""Short calls that build scenarios."""

from __future__ import annotations

from typing import Any

from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.parking_lot import ParkingLot
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

__all__ = ["bottleneck", "parking_lot"]


def bottleneck(**fields: Any) -> Scenario:
    """Build flows through one link, each from its own host.

    By default it has 100 Mbit/s, 20 ms, a buffer of 250 kB and one paced flow of packets of 1500 bytes, for 60 s.

    Parameters
    ----------
    **fields
        Fields of `Bottleneck` (capacity, buffer, queue, rtt, cross, start_spread) and of `Scenario`; `flows` are
        `Flow`, or dicts as in a file.

    Returns
    -------
    Scenario
        Links and flows, no longer the builder.

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
    usual: dict[str, Any] = {"name": "bottleneck", "packet_size": 1500.0, "duration": 60.0, "warmup": 10.0}
    return _built(Bottleneck, usual | {"flows": (Flow(id="flow", sender="paced"),)} | fields)


def parking_lot(**fields: Any) -> Scenario:
    """Build equal links in a row: flows over all of them, and others over one each.

    By default three links of 20 Mbit/s, each of 5 ms and with a buffer of 100 kB, one Cubic flow over all of them and
    one over each, for 60 s.

    Parameters
    ----------
    **fields
        Fields of `ParkingLot` (hops, capacity, delay, buffer, queue, cross) and of `Scenario`; `flows` and `cross` are
        `Flow`, or dicts as in a file.

    Returns
    -------
    Scenario
        Links and flows, no longer the builder.

    Raises
    ------
    InvalidValue
        A value that a part refuses.

    Examples
    --------
    >>> from netctrl.scenario.builders import parking_lot
    >>> scenario = parking_lot(hops=2, queue="pie", cross=[{"sender": "bbr", "count": 4}])
    >>> [(flow.id, flow.path) for flow in scenario.flows]
    [('cubic', ('hop1', 'hop2')), ('bbr1', ('hop1',)), ('bbr2', ('hop2',))]
    """
    usual: dict[str, Any] = {"name": "parking lot", "packet_size": 1500.0, "duration": 60.0, "warmup": 10.0}
    cubic = (Flow(sender="cubic"),)
    return _built(ParkingLot, usual | {"flows": cubic, "cross": cubic} | fields)


def _built(kind: type[Any], fields: dict[str, Any]) -> Scenario:
    words = {name: fields.pop(name) for name in kind.__struct_fields__ if name in fields}
    return Scenario(**fields, network=kind(**words))
