"""HFTraC paper, Fig. 13: TCP Cubic beside background UDP on the lab testbed, with and without coordinated HFTraC.

In ns-3, as the fluid has no TCP. The testbed is Fig. 7a's with its link from S3 to Dst. The paper publishes neither mu
nor nominal rates: mu is tuned here, beside 0.1, and TCP is taken to send 95 % of what the background leaves. Fractional
Gaussian noise stands in for the traces. The links have delays of 10 ms, not 0.2 ms, so that propagation is a sampling
interval.

What is shown is kept: 5 runs of 60 s that count, after 1.5 s, for each point (`python experiments/full.py
hftrac-fig13`); the paper doesn't say how long. Three points run for 10 s beside it each time. The third panel is that
flow's round trip, as Fig. 14 has it of a video stream.
"""

import msgspec
import pandas as pd
from common import Measured, Outcome, measured, quotient
from hftrac.fig_common import FIFO, STATIC, WAYS, Way, curve, grid, panel, verdict
from hftrac.networks import MEGA, demand, link, testbed
from hftrac.packet_study import Case, PacketStudy, beside_udp, means, short_over_kept
from matplotlib.figure import Figure

from netctrl.model.network import Network
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

LEVELS = (5.0, 15.0, 20.0, 25.0)
"""Means of the background [Mbit/s]."""
MU = 0.1
MUS = (0.01, 0.03, MU, 0.3, 1.0)
"""Of coordinated control."""
FACTORS = (1.1, 1.2, 1.3)
"""Of static pacing, over nominal rates."""
SHARE = 0.95
"""Nominal rate of TCP over what the background leaves to it."""
DEVIATION = 8.0 / 38.0
"""Of the background over its mean: the testbed's."""
SECONDS, WARMUP = 60.0, 1.5
SHORT_SECONDS = 10.0
SHORT = (("fifo", 0.0, 20.0), ("coordinated", MU, 20.0), ("static", 1.1, 20.0))
POLICIES = {"fifo": FIFO, "coordinated": WAYS["coordinated"], "static": STATIC}
LOOKS = {
    "fifo": FIFO,
    "fixed": Way(f"coordinated HFTraC, mu = {MU:g}", "#93c47d", "-", WAYS["coordinated"].at(MU)),
    "coordinated": Way("coordinated HFTraC, mu tuned", "#38761d", "-", WAYS["coordinated"].policy),
    "static": Way("static pacing, factor tuned", "#b45f06", "--", STATIC.policy),
}
LEVEL = "mean background UDP [Mbit/s]"


def network(level: float) -> Network:
    """The testbed with its last link, and nominal rates for this background."""
    base = testbed()
    left = min(30.0 - 0.25 * level, 42.0 - level)  # at S1 -> S3 and at S3 -> Dst
    split = {"e2": 1.0, "s23": 0.75, "s21": 0.25, "s13": 1.0, "s3d": 1.0}
    demands = (demand("p1", "H1", "Dst", SHARE * left, 0.0), demand("p2", "H2", "Dst", level, DEVIATION * level, split))
    links = (*base.links, link("s3d", "S3", "Dst", 42, 0.3, delay=0.0))
    return msgspec.structs.replace(base, links=links, demands=demands, nodes=())


def requested(case: Case, seconds: float) -> Scenario:
    name, value, level = case
    policy = FIFO.policy if name == "fifo" else POLICIES[name].at(value)
    tcp = [Flow(id="p1", sender="cubic")]
    return beside_udp("fig13", network(level), policy, tcp, seconds, WARMUP)


def of_result(result: Result) -> dict[str, float]:
    figures = result.figures()
    lost = 100.0 * result.totals["lost"][0] / result.totals["entered"][0]
    return {
        "goodput": figures["goodput", "p1"][0] / MEGA,
        "loss": 100.0 * figures["loss", "network"][0],
        "round_trip": 1e3 * figures["rtt", "p1"][0],
        "sent_again": 100.0 * figures["resent", "p1"][0],
        "backlog": result.totals["backlog"][0].sum() / 1e3,
        **{f"lost_{name}": share for name, share in zip(result.links, lost, strict=True)},
    }


STUDY = PacketStudy(
    name="hftrac-fig13",
    columns=("way", "value", "level"),
    cases=[
        (name, value, level)
        for name, values in (("fifo", (0.0,)), ("coordinated", MUS), ("static", FACTORS))
        for value in values
        for level in LEVELS
    ],
    scenario=requested,
    measure=of_result,
    seconds=SECONDS,
    short=SHORT,
)


def main(*, full: bool = False) -> Outcome:
    data = STUDY.kept_runs()
    curves = shown(data)
    computed = compute(curves)
    computed |= short_over_kept(STUDY, data, SHORT_SECONDS, "goodput")
    return Outcome("fig13", "hftrac", data, draw(curves), computed)


def shown(data: pd.DataFrame) -> pd.DataFrame:
    """The runs behind each curve, by its `look`."""
    parts = {
        "fifo": data[data.way == "fifo"],
        "fixed": data[(data.way == "coordinated") & (data.value == MU)],
        "coordinated": tuned(data[data.way == "coordinated"]),
        "static": tuned(data[data.way == "static"]),
    }
    return pd.concat([part.assign(look=look) for look, part in parts.items()], ignore_index=True)


def tuned(data: pd.DataFrame) -> pd.DataFrame:
    """Of each level and run the row with the mu, or factor, that lost least in the other runs at that level."""
    rows = []
    for _, part in data.groupby("level"):
        loss = part.pivot(index="run", columns="value", values="loss")
        for run in loss.index:
            value = loss.drop(index=run).mean().idxmin()
            rows.append(part[(part.run == run) & (part.value == value)])
    return pd.concat(rows, ignore_index=True)


def compute(curves: pd.DataFrame) -> dict[str, float | Measured]:
    by_run = curves.set_index(["look", "level", "run"]).sort_index()

    def runs(look: str, column: str, level: float) -> pd.Series:
        return by_run.loc[(look, level), column]

    def over(look: str, other: str, column: str, level: float) -> Measured:
        return quotient(runs(look, column, level), runs(other, column, level))

    own = max((runs("coordinated", "lost_e1", level) for level in LEVELS), key=pd.Series.mean)
    trips = [runs("coordinated", "round_trip", x) / runs("fifo", "round_trip", x) - 1.0 for x in LEVELS]
    found: dict[str, float | Measured] = {
        "fig13-last-25": less(over("coordinated", "fifo", "lost_s3d", 25.0)),
        "fig13-low": quotient(runs("fifo", "loss", 5.0), runs("fifo", "loss", 25.0)),
        "fig13-low-place": quotient(runs("fifo", "lost_s13", 5.0), runs("fifo", "loss", 5.0)),
        "fig13-loss-5": change(by_run, "fifo", "coordinated", "loss", LEVELS[0]),
        "fig13-again": float(curves.sent_again.max()),
        "fig13-own": measured(own / by_run.loc["coordinated"].groupby("level").loss.mean().mean()),
        "fig14-rtt": measured(sum(trips) / len(trips)),
    }
    for level in LEVELS[1:]:
        name = f"{level:g}"
        found |= {
            f"fig13-loss-{name}": change(by_run, "fifo", "coordinated", "loss", level),
            f"fig13-throughput-{name}": change(by_run, "coordinated", "fifo", "goodput", level),
            f"fig13-fixed-loss-{name}": change(by_run, "fifo", "fixed", "loss", level),
            f"fig13-fixed-throughput-{name}": change(by_run, "fixed", "fifo", "goodput", level),
            f"fig13-static-loss-{name}": over("static", "coordinated", "loss", level),
            f"fig13-static-throughput-{name}": more(over("static", "coordinated", "goodput", level)),
        }
    return found


def less(of: Measured) -> Measured:
    """The decrease that a quotient is."""
    return of._replace(value=1.0 - of.value)


def more(of: Measured) -> Measured:
    return of._replace(value=of.value - 1.0)


def change(by_run: pd.DataFrame, more: str, less: str, column: str, level: float) -> Measured:
    """Difference over FIFO's mean, with its interval: runs are paired, as their traffic is."""
    one, other, fifo = (by_run.loc[(look, level), column] for look in (more, less, "fifo"))
    return measured((one - other) / fifo.mean())


def draw(curves: pd.DataFrame) -> Figure:
    fifo = curves[curves.look == "fifo"].set_index(["level", "run"]).goodput.rename("of_fifo")
    beside = curves.join(fifo, on=["level", "run"])
    data = means(beside.assign(more=100.0 * (beside.goodput / beside.of_fifo - 1.0)), ("look", "level"))
    figure = Figure(figsize=(15.0, 9.0), layout="constrained")
    panels = figure.subplots(2, 2)
    for axes, column in zip(panels.flat, ("goodput", "loss", "more", "round_trip"), strict=True):
        for look, way in LOOKS.items():
            if look != "fifo" or column != "more":
                curve(axes, way, "level", column, data[data.look == look])
    (goodput, loss), (more, trip) = panels
    loss.set_yscale("log")
    panel(goodput, "Fig. 13: what TCP Cubic brings to its end", LEVEL, "goodput [Mbit/s]")
    panel(loss, "Fig. 13: total loss", LEVEL, "loss, of what TCP and UDP send [%]", legend=None)
    panel(more, "TCP beside FIFO's, run by run", LEVEL, "more goodput than FIFO's [%]", legend=None)
    panel(trip, "as Fig. 14: TCP's round trip, a bulk flow in place of a video", LEVEL, "round trip [ms]", legend=None)
    grid(*panels.flat)
    verdict(
        figure,
        f"Tuned: what lost least in the other runs. Means of {STUDY.runs} runs of {SECONDS:g} s in ns-3 with 95 %"
        " intervals.",
        "Fig. 13",
        "Fig. 14",
    )
    return figure
