"""Pacing in virtual time: throughput, RTT and queue of seven senders."""

import pandas as pd
from common import Measured, Outcome, measured, shown, verdicts
from linux.virtual_pacing import ALONE, BUNCHES, FILLED, LINE, OURS, PEER, QUEUES, SENDERS, STUDY, ratios
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {"fifo": "#1f4e9c", "fq_codel": "#b45f06"}
FROZEN = "paper's law, R = 95"
COLUMNS = {
    "Mbit/s": ("mbit", 2),
    "its std in 100 ms": ("mbit_std", 2),
    "smoothed RTT, ms": ("rtt_ms", 2),
    "queue by probes, ms": ("queue_ms", 2),
}


def main(*, full: bool = False) -> Outcome:
    data = STUDY.read()
    figure = Figure(figsize=(12.0, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    alone = data[data.path == ALONE]
    by_sender(left, alone, "mbit", "Mbit/s")
    by_sender(right, alone, "rtt_ms", "smoothed RTT [ms]")
    left.legend(fontsize=8.5)
    figure.supxlabel(verdicts("linux", "Pacing, virtual time"), fontsize=9)
    return Outcome("pacing-virtual", "linux", data, figure, computed(data), readable(data))


def computed(data: pd.DataFrame) -> dict[str, float | Measured]:
    """Values of the claims: ours over BBR's by repeat, and the rate at which the paper's law freezes."""
    found: dict[str, float | Measured] = {}
    repeats = data.repeat.nunique()
    for queue in QUEUES:
        for field, value in ratios(data[data.queue == queue], ALONE).items():
            if queue == "fifo" or field != "queue_ms":  # with fq_codel probes have a queue of their own
                found[f"pacing-virtual-{queue}-{field}"] = Measured(*value, repeats)
    for field, value in ratios(data[data.queue == "fifo"], BUNCHES).items():
        found[f"pacing-virtual-bunches-{field}"] = Measured(*value, repeats)
    fifo = data[(data.queue == "fifo") & (data.path == ALONE)].groupby("sender")
    found["pacing-virtual-frozen"] = measured(fifo.get_group(FROZEN).mbit)
    found["pacing-virtual-filled"] = measured(fifo.get_group(FILLED).rtt_ms)
    found["pacing-virtual-ours"] = measured(fifo.get_group(OURS).mbit)
    found["pacing-virtual-bbr-queue"] = measured(fifo.get_group(PEER).queue_ms)
    return found


def by_sender(axes: Axes, data: pd.DataFrame, column: str, label: str) -> None:
    """Every repeat of every sender, behind either queue."""
    places = {name: place for place, name in enumerate(SENDERS)}
    for shift, (queue, colour) in zip((-0.12, 0.12), COLOURS.items(), strict=True):
        part = data[data.queue == queue]
        axes.plot(part[column], part.sender.map(places) + shift, "o", ms=4.5, color=colour, label=queue)
    axes.set_yticks(list(places.values()), list(places))
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(color="#dddddd", lw=0.6)


def readable(data: pd.DataFrame) -> pd.DataFrame:
    """For the docs: means over repeats, ± half of their 95 % interval."""
    rows = []
    for (queue, path, sender), part in data.groupby(["queue", "path", "sender"], sort=False):
        row: dict[str, object] = {"queue": queue, "acknowledgements": path, "sender": sender}
        row |= {title: shown(part[column], digits) for title, (column, digits) in COLUMNS.items()}
        rows.append(row | {"sent again": f"{part.sent_again.mean():.0f}", "runs": len(part)})
    order = {name: place for place, name in enumerate([*QUEUES, ALONE, LINE, BUNCHES, *SENDERS])}
    frame = pd.DataFrame(rows)
    return frame.sort_values(
        ["acknowledgements", "queue", "sender"], key=lambda names: names.map(order), kind="stable", ignore_index=True
    )
