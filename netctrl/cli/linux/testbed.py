"""`netctrl linux testbed`: a network of namespaces on this machine."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import GOOD, as_json, report, say
from netctrl.cli.cases import NetworkName
from netctrl.cli.linux.common import Stopped, stoppable
from netctrl.cli.options import RATE, SIZE, TIME, option, positional
from netctrl.errors import InvalidValue
from netctrl.units import format_quantity

if TYPE_CHECKING:
    from netctrl.linux.testbed.plan import TestbedPlan

_NAMED = 6
"""Number of node pairs that are named in a line."""


def testbed(
    network: Annotated[
        NetworkName | None, positional("NETWORK", "node-link JSON, or the name of one that comes with netctrl")
    ] = None,
    /,
    *,
    capacity: Annotated[float | None, RATE("capacity of links for which the file gives none")] = None,
    burst_bytes: Annotated[float | None, SIZE("burst of each link's tbf; by default two frames and 0.5 ms")] = None,
    hold_s: Annotated[float | None, TIME("duration; by default until Ctrl-C", "--for")] = None,
    dry_run: Annotated[bool, option("", "show what would be built; needs no privilege")] = False,
    clean: Annotated[bool, option("", "only remove the remains of killed testbeds")] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Builds the testbed, prints its addresses and interfaces, and holds it.

    Examples
    --------
    netctrl linux testbed abilene --dry-run
    netctrl linux testbed three-in-a-row --for 10s
    """
    from netctrl.linux.namespace import clean_leftovers

    if clean:
        found = list(clean_leftovers())
        said = "".join(f"{name}: removed\n" for name in found) or "no remains of testbeds were found\n"
        return say(as_json({"removed": found}) if json else said)
    if network is None:
        raise InvalidValue("NETWORK", None, "a network file, or --clean")

    from netctrl.datasets import network_path
    from netctrl.linux.testbed.bed import Testbed
    from netctrl.model.network import read_network

    bed = Testbed(
        read_network(network_path(network), capacity=capacity, demand_unit=0), burst_bytes=burst_bytes, named=True
    )
    names = {node.id: bed.name(node.id) for node in bed.network.nodes}
    if dry_run:
        return say(as_json(_content(bed.plan, names)) if json else _table(bed.plan, names, "would be built"))
    with stoppable() as stop, bed:
        say(as_json(_content(bed.plan, names)) if json else _table(bed.plan, names, "up"))
        with suppress(Stopped):  # the normal end
            stop.wait(lambda: False, hold_s)
    return GOOD


def _content(plan: TestbedPlan, names: dict[str, str]) -> dict[str, Any]:
    return {
        "one_way": [list(pair) for pair in plan.one_way],
        "nodes": {node: {"namespace": names[node], "address": address} for node, address in plan.addresses.items()},
        "links": {
            name: {
                "node": wire.link.source,
                "interface": wire.interface,
                "rate_bit_per_s": wire.link.capacity,
                "burst_bytes": wire.burst_bytes,
                "limit_bytes": wire.limit_bytes,
                "delay_s": wire.link.delay,
                "delay_line": wire.delay_line,
            }
            for name, wire in plan.wires.items()
        },
    }


def _table(plan: TestbedPlan, names: dict[str, str], state: str) -> str:
    rows = [(node, f"{plan.addresses[node]}, ip netns exec {names[node]} ...") for node in names]
    for name, wire in plan.wires.items():
        text = f"{wire.interface} at {wire.link.source}: tbf {format_quantity(wire.link.capacity, 'bit/s')}"
        text += f", burst {wire.burst_bytes} B, limit {wire.limit_bytes} B"
        if wire.delay_line is not None:
            text += f", then {format_quantity(wire.link.delay, 's')}"
        rows.append((name, text))
    title = f"{plan.network.name or 'network'}: {len(names)} nodes, {len(plan.wires)} links, {state}"
    return report(title, rows, _one_way(plan))


def _one_way(plan: TestbedPlan) -> list[str]:
    """Notes that name a few of the node pairs without a return path."""
    pairs = [f"{here} to {there}" for here, there in plan.one_way]
    if not pairs:
        return []
    more = f" and {len(pairs) - _NAMED} more" if len(pairs) > _NAMED else ""
    return [
        f"no return path: {', '.join(pairs[:_NAMED])}{more}; TCP and ping get no answer there, UDP works one way",
        "add links in the other direction to the network file",
    ]
