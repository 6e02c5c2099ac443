"""HFTraC's Fig. 10b in virtual time: triangular rates in the place of normal ones.

Two cases: both demands of the testbed with a triangular spread of the same deviation, at the load of Fig. 7's right
point; and the paper's numbers, rates of Src2 between 0 and 60 Mbit/s, beside a steady Src1, as in the fluid (the paper
doesn't say which source they are of).
"""

import pandas as pd
from common import Measured, Outcome, measured, verdicts
from linux.hftrac_bed import WARM_UP
from linux.hftrac_cases import BELIEVED, FIGURES, cases, foreseen_rows
from linux.hftrac_network import PUBLISHED, SAME
from linux.hftrac_points import LOSS, QUEUE, at, bars, dress, of, of_row, over_fifo, points_of
from linux.virtual_hftrac import ALIGNED, DRAWN, KEY, PHASES, STUDY
from matplotlib.figure import Figure

PLACE = "HFTraC in virtual time, Fig. 10b"
WAYS = FIGURES["10b"].ways
NORMAL = -1.0
"""In the place of `SAME` and `PUBLISHED`: Fig. 7's normal rates with the deviation of `SAME`."""
CASES = {
    NORMAL: "normal,\nN(19, 8²), N(38, 8²)",
    SAME: "triangular,\nsame deviation",
    PUBLISHED: "triangular,\n0 to 60",
}


def runs() -> pd.DataFrame:
    """Those of Fig. 10b, and Fig. 7's with the same network, for comparison; with the fluid of the same demands."""
    data = STUDY.read()
    normal = data[(data.figure == "7") & (data.x == BELIEVED) & data.way.isin(WAYS)]
    normal = normal[(normal.phase == DRAWN) | normal.way.isin(("fifo", "static"))]
    parts = []
    for figure, part in (("7", normal), ("10b", data[data.figure == "10b"])):
        for case in cases(figure):
            if len(mine := of(part, case)):
                fluid = foreseen_rows(case, float(mine.seconds.iloc[0]), WARM_UP, int(mine.run.max()) + 1)
                parts.append(mine.merge(fluid, on=KEY, how="left"))
    found = pd.concat(parts, ignore_index=True).dropna(axis=1, how="all")
    assert set(found.phase) <= {ALIGNED, *PHASES["10b"]}
    return found.assign(x=found.x.where(found.figure == "10b", NORMAL), figure="10b")


def main(*, full: bool = False) -> Outcome:
    data = runs()
    table = points_of(data)
    computed: dict[str, float | Measured] = {}
    for name, x in (("normal", NORMAL), ("same", SAME)):
        for way, value in over_fifo(data, table, x).items():
            computed[f"hftrac-10b-{name}-{way}"] = value
    for way in WAYS:  # FIFO loses nothing there
        computed[f"hftrac-10b-published-{way}"] = measured(of(data, at(table, way, PUBLISHED)).loss)
    figure = Figure(figsize=(13.0, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, (column, label) in zip((left, right), (("loss", LOSS), ("queue_kbit", QUEUE)), strict=True):
        bars(axes, table, column, CASES, WAYS, ecolor="#888888")
        dress(axes, "Fig. 10b in virtual time", "", label)
    left.legend(fontsize=8.5)
    tail = f"{int(table.runs.min())} runs of {data.seconds.iloc[0]:g} s a point, 95 % intervals; dots: the fluid."
    figure.supxlabel(f"{verdicts('linux', PLACE)}\n{tail}", fontsize=9)
    return Outcome("hftrac-fig10b", "linux", data, figure, computed, readable(table))


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """For the docs."""
    rows = []
    for x, name in CASES.items():
        for _, row in table[table.x == x].iterrows():
            line = {"rates": name.replace("\n", " "), "way": row.way}
            line |= {"mu or factor": "" if row.way == "fifo" else f"{row.value:g}"}
            line |= {"loss, %": of_row(row, "loss", 3), "in the fluid": f"{row.fluid_loss:.3f}"}
            line |= {"mean queue, kbit": of_row(row, "queue_kbit", 1), "in the fluid ": f"{row.fluid_queue_kbit:.1f}"}
            rows.append(line | {"runs": int(row.runs)})
    return pd.DataFrame(rows)
