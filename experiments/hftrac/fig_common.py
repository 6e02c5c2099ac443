"""What the figures of the HFTraC paper's simulations share: ways to set link rates, runs in the fluid, and drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from common import Measured, measured, verdicts
from hftrac.networks import MEGA, STEP
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

import netctrl
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.law import LinkRateLaw
from netctrl.model.network import Link, Network, Node
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import Backpressure, Fifo, HftracPolicy, Policy, StaticPacing
from netctrl.scenario.result import Result
from netctrl.sim.network.run import simulate_network
from netctrl.sim.network.tune import LawOf, MaxUtilization

SECONDS, WARMUP, RUNS = 100.0, 10.0, 32
FRESH = 1000
"""Number of the first run of all that is drawn: nothing is tuned by those."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to set link rates, and how its curve looks."""

    label: str
    colour: str
    style: str
    policy: Policy

    def at(self, value: float) -> Policy:
        """Its policy with another mu, or another factor on nominal rates."""
        field = "mu" if isinstance(self.policy, HftracPolicy) else "factor"
        return msgspec.structs.replace(self.policy, **{field: value})


def centralized(delay: int, label: str, style: str, colour: str = "#1f4e9c") -> Way:
    """Central control with a round trip in samples."""
    return Way(label, colour, style, HftracPolicy(architecture="centralized", mu=1.0, information_delay=delay))


WAYS = {
    "god": Way("GOD", "#222222", "-", HftracPolicy(architecture="god", mu=1.0)),
    "coordinated": Way(
        "coordinated", "#38761d", "--", HftracPolicy(architecture="coordinated", mu=1.0, horizon="exact")
    ),
    "centralized": centralized(1, "centralized, d = 1", "-"),
    "centralized-2": centralized(2, "centralized, d = 2", ":"),
    "myopic": Way("myopic", "#c0504d", "-", HftracPolicy(architecture="myopic", mu=1.0)),
}
STATIC = Way("static pacing", "#b45f06", "-", StaticPacing())
FIFO = Way("FIFO", "#777777", "-", Fifo())
BACKPRESSURE = Way("backpressure", "#8e44ad", "-", Backpressure())
PLAIN = {"fifo": FIFO, "backpressure": BACKPRESSURE}
"""Ways with nothing to tune."""

LOAD, LOSS, QUEUE = "utilization of the busiest link", "loss [%]", "mean queue of a link [kbit]"


def scenario(network: Network, policy: Policy, *, interval: float = STEP, **others: Any) -> netctrl.Scenario:
    """100 s of a network that count, or so many intervals of 10 ms, after a tenth of it that doesn't."""
    seconds, warmup = SECONDS * interval / STEP, WARMUP * interval / STEP
    settings = {"name": "figure", "duration": seconds + warmup, "warmup": warmup} | others
    return routed(network, control=policy, interval=interval, **settings)


def measure(
    requested: netctrl.Scenario, runs: int = RUNS, first_run: int = FRESH, law: LawOf = netctrl.scenario_law
) -> dict[str, float]:
    """Loss [%] and mean queue of a link [kbit] with half widths of their 95 % intervals."""
    found = simulate_network(requested, law(requested), runs=runs, first_run=first_run, watch=False)
    loss, backlog, throughput = (found.interval(what, "network") for what in ("loss", "backlog", "throughput"))
    kbit = BITS_PER_BYTE / 1e3 / len(found.links)
    return {
        "loss": 100.0 * loss.mean,
        "loss_half": 100.0 * (loss.half_width or 0.0),
        "queue": kbit * backlog.mean,
        "queue_half": kbit * (backlog.half_width or 0.0),
        "throughput": throughput.mean / MEGA,
        "throughput_half": (throughput.half_width or 0.0) / MEGA,
    }


def decrease(first: netctrl.Scenario, second: netctrl.Scenario, runs: int = RUNS) -> Measured:
    """Of the loss, from one scenario to another under the same demands, over the first's mean; with its interval."""
    found = (
        simulate_network(requested, netctrl.scenario_law(requested), runs=runs, first_run=FRESH, watch=False)
        for requested in (first, second)
    )
    one, other = (each.figures()["loss", "network"] for each in found)
    return measured((one - other) / one.mean())


def over(first: netctrl.Scenario, second: netctrl.Scenario) -> Measured:
    """The second's loss over the first's, as `decrease`."""
    return (less := decrease(first, second))._replace(value=1.0 - less.value)


def plain_rows(network: Network, runs: int = RUNS, **others: Any) -> list[dict[str, object]]:
    """What FIFO and backpressure lose and let wait."""
    requested = {name: scenario(network, way.policy, **others) for name, way in PLAIN.items()}
    return [{"way": name, "value": np.nan, **measure(each, runs)} for name, each in requested.items()]


def law_for_all_loads() -> LawOf:
    """A policy's law, made once: it doesn't depend on utilization, as all means grow alike."""
    laws: dict[Policy, LinkRateLaw | None] = {}

    def law(desired: netctrl.Scenario) -> LinkRateLaw | None:
        if desired.control not in laws:
            laws[desired.control] = netctrl.scenario_law(desired)
        return laws[desired.control]

    return law


def greatest_utilization(
    requested: netctrl.Scenario, law: LawOf, loss: float, near: float, runs: int, tolerance: float = 2e-3
) -> MaxUtilization | None:
    """Looked for from the greatest of some utilizations where little enough is lost: loss may fall with load."""
    for less in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        options = {"low": near - less, "runs": runs, "tolerance": tolerance}
        try:
            return netctrl.max_utilization(requested, law, loss=loss, **options)
        except netctrl.InvalidValue:
            continue
    return None


def with_buffers(network: Network, sizes: Mapping[str, float | None]) -> Network:
    """The network with other buffers at some links [Mbit]; None is infinite."""
    new = {name: None if size is None else size * MEGA / BITS_PER_BYTE for name, size in sizes.items()}
    links = tuple(msgspec.structs.replace(x, buffer=new.get(x.id, x.buffer)) for x in network.links)
    return msgspec.structs.replace(network, links=links)


def with_hosts(network: Network, size: float | None) -> Network:
    """The testbed with other buffers at its hosts [Mbit]; None is infinite."""
    return with_buffers(network, {"e1": size, "e2": size})


def with_host_links(network: Network) -> Network:
    """Demands begin at a host of their source, behind a link with an infinite buffer and room for twice their means."""
    total: dict[str, float] = {}
    for demand in network.demands:
        total[demand.source] = total.get(demand.source, 0.0) + demand.mean
    links = [Link(id=f"host {x}", source=f"host {x}", target=x, capacity=2.0 * rate) for x, rate in total.items()]
    demands = []
    for demand in network.demands:
        host = f"host {demand.source}"
        split = None if demand.split is None else demand.split | {host: 1.0}
        demands.append(msgspec.structs.replace(demand, source=host, split=split))
    nodes = [*network.nodes, *(Node(id=link.source) for link in links)]
    return msgspec.structs.replace(network, nodes=tuple(nodes), links=(*network.links, *links), demands=tuple(demands))


def with_std(network: Network, std: float) -> Network:
    """The network with one deviation for all demands [Mbit/s]."""
    demands = tuple(msgspec.structs.replace(demand, std=std * MEGA) for demand in network.demands)
    return msgspec.structs.replace(network, demands=demands)


def capped_std(network: Network, std: float) -> Network:
    """The network with one deviation for all demands [Mbit/s], but half a demand's mean at most."""
    capped = [min(std * MEGA, 0.5 * demand.mean) for demand in network.demands]
    demands = (msgspec.structs.replace(demand, std=x) for demand, x in zip(network.demands, capped, strict=True))
    return msgspec.structs.replace(network, demands=tuple(demands))


def row(data: pd.DataFrame, **desired: Any) -> pd.Series:
    """The one row with these values."""
    for column, value in desired.items():
        data = data[data[column] == value]
    if len(data) != 1:
        raise LookupError(f"{len(data)} rows with {desired}")
    return data.iloc[0]


def at_link(result: Result, link: str, packet: float) -> dict[str, float]:
    """The first run at a link: utilization [%], its queue and all queues [packet of so many bytes], all loss [%]."""
    at, backlog = result.links.index(link), result.totals["backlog"][0]
    carried = BITS_PER_BYTE * result.totals["departed"][0, at]
    return {
        "utilization": 100.0 * carried / (result.seconds * result.totals["capacity"][at]),
        "backlog": backlog[at] / packet,
        "backlog_all": backlog.sum() / packet,
        "loss": 100.0 * result.figures()["loss", "network"][0],
    }


def curve(axes: Axes, way: Way, x: str, y: str, part: pd.DataFrame, **options: Any) -> None:
    """y over x with 95 % intervals of whichever has them."""
    widths = {f"{which}err": part[f"{name}_half"] for which, name in (("x", x), ("y", y)) if f"{name}_half" in part}
    look = {"color": way.colour, "ls": way.style, "label": way.label, "lw": 1.5, "marker": "o", "ms": 3.0}
    axes.errorbar(part[x], part[y], **widths, **(look | {"elinewidth": 0.9, "capsize": 2.0} | options))


def curves(axes: Axes, ways: Mapping[str, Way], x: str, y: str, data: pd.DataFrame) -> None:
    """A curve for each way, through its rows."""
    for name, way in ways.items():
        curve(axes, way, x, y, data[data.way == name])


def points(axes: Axes, x: str, y: str, data: pd.DataFrame) -> None:
    """FIFO and backpressure, which are no curves."""
    for name, way in PLAIN.items():
        curve(axes, way, x, y, data[data.way == name], ls="none", marker="s", ms=6.0)


def bars(
    axes: Axes, looks: Mapping[str, Way], heights: Mapping[str, Sequence[float]], errors: Mapping[str, Any]
) -> dict[str, BarContainer]:
    """Groups of bars, one of each way in every group."""
    step, made = 0.84 / len(looks), {}
    for k, (name, way) in enumerate(looks.items()):
        place = np.arange(len(heights[name])) + step * (k - 0.5 * (len(looks) - 1))
        look = {"width": 0.94 * step, "color": way.colour, "capsize": 2.5, "label": way.label}
        made[name] = axes.bar(place, heights[name], yerr=errors[name], **look)
    return made


def panel(axes: Axes, title: str, x: str = "", y: str = "", *, legend: str | None = "best", columns: int = 1) -> None:
    """Title, labels, and the legend's place."""
    axes.set_title(title, fontsize=10.5)
    axes.set(xlabel=x, ylabel=y)
    if legend is not None:
        axes.legend(fontsize=8.5, loc=legend, ncols=columns)


def verdict(figure: Figure, text: str, *places: str) -> None:
    """What came out in a line, and how many of the statements at these places came out how, under the picture."""
    figure.supxlabel(f"{text}\n{verdicts('hftrac', *places)}", fontsize=9)


def grid(*many: Axes) -> None:
    for axes in many:
        axes.grid(which="major", color="#dddddd", lw=0.6)
