"""Scenarios of data centres."""

from __future__ import annotations

from typing import Any

import msgspec

from netctrl.laws.window.records import Scheme
from netctrl.scenario.fabric.flows import HostGroup
from netctrl.scenario.fabric.topology import Topology
from netctrl.scenario.scenario import Scenario


def data_centre(
    network: Topology, sender: Scheme, *flows: HostGroup, duration: float = 0.01, **fields: Any
) -> Scenario:
    """Flows in a topology; `fields` may be the topology's own too."""
    own = {name: fields.pop(name) for name in network.__struct_fields__ if name in fields}
    network = msgspec.structs.replace(network, **own)
    given = {"name": "data centre"} | fields
    return Scenario(network=network, flows=flows, sender=sender, duration=duration, **given)
