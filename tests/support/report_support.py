"""Pages that several tests read, and a reader that says what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from html.parser import HTMLParser
from typing import Any

import netctrl
from netctrl.design.arc.map import arc_stability_map
from netctrl.model.datasets import model_path, network_path
from netctrl.model.design.base import Design
from netctrl.scenario.links import Link
from netctrl.scenario.network.sweep import Grid, SweepSpec
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

EVIL = "</title></script><script>alert('x')</script>&\"' $x$"
"""A name that is a page of its own where it isn't escaped."""

TWO_FLOWS = """schema = "netctrl.scenario/3"
name = "two"
links = [{ id = "line", source = "a", target = "b", capacity = "10Mbit", buffer = "60kB" }]
flows = [{ id = "flows", path = ["line"], rtt = "50ms", count = 2 }]
duration = "5s"
"""
"""A scenario's file."""

coarse_map = partial(arc_stability_map, points=12)
"""Of a design in tests: the whole map takes some seconds."""


def refused(make: Callable[[], Any]) -> Design[Any, Any, Any]:
    """The Design that is refused."""
    try:
        make()
    except netctrl.NoAdmissibleDesign as error:
        assert error.design is not None
        return error.design
    raise AssertionError("it was not refused")


DESIGNS: dict[str, Callable[[], Design[Any, Any, Any]]] = {
    "arc": lambda: netctrl.arc(50, argv=["python", "-m", "netctrl.design", "arc", "--N", "50"]),
    "arc over a box": lambda: netctrl.arc((50, 100), (0.2, 0.5), simulation=False),
    "arc, unstable": lambda: netctrl.arc(50, alpha_per_packet=1e-4),
    "arc, no equilibrium": lambda: refused(lambda: netctrl.arc(1000, 0.1)),
    "hftrac": lambda: netctrl.hftrac(netctrl.read("merge"), 0.01, mu=0.1, compare=True, inputs=[network_path("merge")]),
    "connet": lambda: netctrl.connet(netctrl.read("connet-paper"), inputs=[model_path("connet-paper")]),
    "mpcc": lambda: netctrl.mpcc(4, 1e9, 1e-4, table=(2, 40)),
    "pacing": netctrl.pacing,
    "pacing to a queue of its own rate": lambda: netctrl.pacing(mode="own-rate", flows=3),
    "queue": lambda: netctrl.queue_design("dualpi2", rtt_s=0.02, window_packets=(5.0, 10.0), senders="creno"),
    "ecn": lambda: netctrl.ecn_design(rtt_s=1e-4, flows=(2.0, 8.0), capacity_bit_per_s=1e9),
}


@cache
def a_design(name: str) -> Design[Any, Any, Any]:
    """One of DESIGNS."""
    return DESIGNS[name]()


def two_flows(name: str = EVIL) -> Scenario:
    """A short scenario that all engines run."""
    line = Link(id="line", source="left", target="right", capacity="10Mbit", buffer="60kB")
    flows = Flow(id="flows", path=("line",), rtt="50ms", count=2)
    return Scenario(name=name, duration="5s", links=(line,), flows=(flows,))


def a_sweep(name: str = EVIL) -> SweepSpec:
    """Four cells of a small network; two trade loss for backlog."""
    graph = {"kind": "routed", "graph": netctrl.read("tandem")}
    scenario = {"network": graph, "interval": 0.01, "duration": 1.0}
    buffers = {"network.graph.links.*.buffer": [2000.0, 20000.0]}
    grids = (
        Grid(label=name, set={"control.kind": "fifo"}, over=buffers),
        Grid(label="static", set={"control.kind": "static"}, over={"control.factor": [1.05, 1.2]}),
    )
    return SweepSpec(name=name, runs=3, scenario=scenario, grid=grids)


VOID = {"meta", "link", "br", "wbr", "img"}
REFERENCES = ("src", "href", "xlink:href", "action", "data", "srcset", "poster")


class Reader(HTMLParser):
    """Reads a page: its complaints, ids, text, and what of it is a script."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if len(given) != len(attrs):
            self.wrong.append(f"<{tag}> has an attribute twice")
        self.tags.append((tag, given))
        self.ids += [given["id"]] if given.get("id") else []
        for name, value in given.items():
            self._attribute(tag, name, value or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> ends another element")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("style", "script"):
            if re.search(r"@import|url\(", data) and self._open[-1] == "style":
                self.wrong.append("the style refers to a file")
        else:
            self.text.append(data)

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name.startswith("on") or name == "style":
            self.wrong.append(f"<{tag}> has the attribute {name}, which the page's policy forbids")
        if name in REFERENCES and not value.startswith(("#", "data:")):
            self.wrong.append(f"<{tag}> refers to {value}")
        if "//" in value and tag != "meta" and not value.startswith("data:"):
            self.wrong.append(f"<{tag}> names another place: {value}")


def read_page(content: bytes) -> Reader:
    """A page that was read to its end."""
    reader = Reader()
    reader.feed(content.decode())
    reader.close()
    reader.wrong += [f"<{tag}> is not ended" for tag in reader._open]
    references = re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", content.decode())
    reader.wrong += [f"no element has the id {name}" for name in set(references) - set(reader.ids)]
    return reader
