"""Links of a network under demands as those of a scenario of links and flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netctrl.model import network
from netctrl.scenario.links import Link


def kernel_links(links: Sequence[network.Link], queue: Any) -> tuple[Link, ...]:
    """Links of a network as those of a scenario, whose ids and nodes have other names."""
    ends = dict.fromkeys(end for link in links for end in (link.source, link.target))
    nodes = {name: f"node{k}" for k, name in enumerate(ends)}
    return tuple(
        Link(
            id=f"link{k}",
            source=nodes[each.source],
            target=nodes[each.target],
            capacity=each.capacity,
            delay=each.delay,
            buffer=each.buffer,
            queue=queue,
        )
        for k, each in enumerate(links)
    )
