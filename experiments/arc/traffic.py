"""What Figs. 5 to 9, 11 and 12 of the ARC paper share: schemes, phases, tables and the picture of fluid beside ns-3."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pandas as pd
from common import sampled, used, variation, verdicts
from matplotlib.figure import Figure
from packets import available, run_all, run_ns3
from study import Case, Made, Record, Study, made_by

from netctrl.engines.engine import supports
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.records import DropTailQueue, Queue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.model.datasets import scenario_path
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.offers import Web
from netctrl.scenario.transfers import SHORT_OBJECT_BYTES
from netctrl.sim.fluid.run import simulate_many

SEEDS = (1, 2, 3, 4, 5)

ARC, ARC_2, PI, AVQ, SFC, DROP_TAIL = "ARC", "ARC, d = 2 s", "PI", "AVQ", "SFC", "drop-tail"
SCHEMES: dict[str, Queue] = {
    ARC: ArcQueue(),
    PI: PiQueue(),
    AVQ: AvqQueue(),
    SFC: SfcQueue(),
    DROP_TAIL: DropTailQueue(),
}
"""The paper's settings (Section IV). SFC's law and PI's reference of 50 packets are assumed: the paper gives none."""

COLOURS = {ARC: "#1f4e9c", ARC_2: "#6fa8dc", PI: "#b45f06", AVQ: "#6aa84f", SFC: "#8e44ad", DROP_TAIL: "#777777"}


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a run that is summarised by itself; of a staircase, from when the new flows have started."""

    name: str
    start: float
    stop: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """One figure: a scenario under several schemes, in the fluid and in ns-3."""

    name: str
    scenario: Scenario
    schemes: Mapping[str, Queue]
    phases: Sequence[Phase]
    link: str = "forward"
    seeds: Sequence[int] = SEEDS

    @property
    def full(self) -> Study:
        """Its runs in ns-3 in full length."""
        return Study(
            name=self.name,
            key=("scheme", "seed"),
            repeats=self.seeds,
            cases=lambda seed: [(scheme, seed) for scheme in self.schemes],
            runs=made_by(self._run, os.cpu_count() or 1),
            record=self._record,
            file=f"{self.name}-ns3",
        )

    def _run(self, scheme: str, seed: int) -> Made:
        """A row for each phase; of the first seed the series too."""
        result = run_ns3(under(self.scenario, self.schemes[scheme], seed))
        parts = {"-series": series(self, {scheme: [result]})} if seed == SEEDS[0] else {}
        return Made(table(self, {scheme: [result]}).to_dict("records"), result, parts)

    def _record(self, before: Record, data: pd.DataFrame, case: Case, result: Result) -> Record:
        run = {"scheme": case[0], "queue": self.schemes[case[0]], "seed": case[1], "simulator": result.simulator}
        runs = [*before.get("runs", []), run | {"provenance": result.provenance}]
        return before | {"scenario": self.scenario, "runs": runs}


STAIRCASE = Traffic(
    name="arc-fig05",
    scenario=read_scenario(scenario_path("arc-staircase")),
    schemes={ARC: SCHEMES[ARC], ARC_2: ArcQueue(alpha=2.84e-5, epoch=2.0)} | SCHEMES,
    phases=[Phase(f"{n} flows", 200.0 * k + 50.0, 200.0 * (k + 1)) for k, n in enumerate((10, 50, 100, 200, 400, 800))],
)
"""Fig. 5."""

BULK = Traffic(
    name="arc-bulk",
    scenario=read_scenario(scenario_path("arc-staircase-bulk")),
    schemes={name: SCHEMES[name] for name in (ARC, PI, DROP_TAIL)},
    phases=[Phase(f"{n} flows", 200.0 * k + 50.0, 200.0 * (k + 1)) for k, n in enumerate((10, 50, 100, 200))],
)
"""The staircase without Web sessions and reverse flows."""

ROUND_TRIP = Traffic(
    name="arc-fig06",
    scenario=read_scenario(scenario_path("arc-round-trip")),
    schemes=SCHEMES,
    phases=[Phase(f"{0.3 * (k + 1):.1f} s", 200.0 * k, 200.0 * (k + 1)) for k in range(8)],
)
"""Fig. 6."""

CAPACITY = Traffic(
    name="arc-fig07",
    scenario=read_scenario(scenario_path("arc-capacity")),
    schemes=SCHEMES,
    phases=[Phase(f"{10 * (k + 1)} Mbit/s", 200.0 * k, 200.0 * (k + 1)) for k in range(5)],
)
"""Fig. 7."""

FLASH_CROWD = Traffic(
    name="arc-fig08",
    scenario=read_scenario(scenario_path("arc-flash-crowd")),
    schemes=SCHEMES,
    phases=[
        Phase("before", 500.0, 2000.0),
        Phase("growing", 2000.0, 4000.0),
        Phase("peak", 5000.0, 7500.0),
        Phase("after", 11000.0, 13000.0),
    ],
    seeds=SEEDS[:2],  # 2.6 million steps each
)
"""Figs. 8 and 9."""

BOTTLENECKS = Traffic(
    name="arc-fig11",
    scenario=read_scenario(scenario_path("arc-bottlenecks")),
    schemes=SCHEMES,
    phases=[Phase("all", 0.0, 300.0), Phase("settled", 100.0, 300.0)],
    link="hop2",
)
"""Figs. 11 and 12."""

STUDIES = {study.name: study for study in (STAIRCASE, BULK, ROUND_TRIP, CAPACITY, FLASH_CROWD, BOTTLENECKS)}


def under(scenario: Scenario, queue: Queue, seed: int = 1) -> Scenario:
    """The scenario with `queue` on every link."""
    links = tuple(msgspec.structs.replace(link, queue=queue) for link in scenario.links)
    return scenario.replace(links=links, seed=seed)


def shortened(scenario: Scenario, factor: float, keep: float = 1.0) -> Scenario:
    """All times of a scenario times `factor`, of which the first `keep` part is run."""
    end = scenario.duration * factor * keep

    def scaled(times: tuple[float, float] | None) -> tuple[float, float] | None:
        return None if times is None else (times[0] * factor, times[1] * factor)

    flows = [
        msgspec.structs.replace(group, start=scaled(group.start), stop=scaled(group.stop))
        for group in scenario.flows
        if group.start[0] * factor < end
    ]
    changes = [msgspec.structs.replace(c, at=c.at * factor) for c in scenario.changes if c.at * factor < end]
    return scenario.replace(
        duration=end, warmup=min(scenario.warmup * factor, 0.5 * end), flows=tuple(flows), changes=tuple(changes)
    )


def fluid(study: Traffic) -> dict[str, list[Result]]:
    """Every scheme that the fluid has for the study and every seed in it, in full length.

    It lacks drop-tail where few flows overflow one of several links.
    """
    schemes = {
        name: queue for name, queue in study.schemes.items() if supports(under(study.scenario, queue))["fluid"] is None
    }
    runs = [under(study.scenario, queue, seed) for queue in schemes.values() for seed in study.seeds]
    results = simulate_many(runs, n_jobs=-1)
    k = len(study.seeds)
    return {scheme: results[i * k : (i + 1) * k] for i, scheme in enumerate(schemes)}


def ns3(study: Traffic, seeds: Sequence[int] = (1,)) -> dict[str, list[Result]]:
    """Every scheme and seed in ns-3; nothing where there is none."""
    if not available():
        return {}
    results = run_all([under(study.scenario, queue, seed) for queue in study.schemes.values() for seed in seeds])
    k = len(seeds)
    return {scheme: results[i * k : (i + 1) * k] for i, scheme in enumerate(study.schemes)}


def table(study: Traffic, results: Mapping[str, Sequence[Result]]) -> pd.DataFrame:
    """One row a scheme, seed and phase."""
    rows = []
    for scheme, runs in results.items():
        for result in runs:
            for phase in study.phases:
                if phase.stop > result.time_s[-1] * (1.0 + 1e-9):
                    continue
                found = result.between(phase.start, phase.stop)
                link, chosen = found.of(study.link), sampled(found, "probability", study.link)
                rows.append(
                    {
                        "simulator": result.simulator,
                        "scheme": scheme,
                        "seed": result.scenario.seed,
                        "phase": phase.name,
                        "throughput_mbit_s": link["throughput"] / 1e6,
                        "utilization": used(found, study.link),
                        "backlog_mean_kb": link["backlog"] / 1e3,
                        "backlog_std_kb": link["backlog std"] / 1e3,
                        "backlog_p95_kb": float(np.quantile(sampled(found, "backlog", study.link), 0.95)) / 1e3,
                        "loss": link["loss"],
                        "marking": link["marks"],
                        "probability_mean": float(chosen.mean()),
                        "probability_cv": variation(chosen),
                        "response_mean_s": found.measures().get(("response", "short objects"), math.nan),
                    }
                )
    return pd.DataFrame(rows)


def series(study: Traffic, results: Mapping[str, Sequence[Result]], bins: int = 200) -> pd.DataFrame:
    """Means over `bins` parts of the first seed's run."""
    parts = []
    for scheme, runs in results.items():
        result = runs[0]
        row = [link.id for link in result.scenario.links].index(study.link)
        width = max(1, len(result.time_s) // bins)
        count = len(result.time_s) // width

        def blocks(values: np.ndarray, row=row, count=count, width=width) -> np.ndarray:
            return values[row, : count * width].reshape(count, width)

        seconds = width * result.scenario.interval
        arrived, lost = blocks(result.series["arrived"]).sum(axis=1), blocks(result.series["lost"]).sum(axis=1)
        part = {
            "simulator": result.simulator,
            "scheme": scheme,
            "time_s": seconds * (np.arange(count) + 0.5),
            "backlog_kb": blocks(result.series["backlog"]).mean(axis=1) / 1e3,
            "throughput_mbit_s": blocks(result.series["departed"]).sum(axis=1) * 8e-6 / seconds,
            "loss_percent": 100.0 * np.divide(lost, arrived, out=np.zeros_like(lost), where=arrived > 0.0),
            "probability": blocks(result.series["probability"]).mean(axis=1),
        }
        if any(isinstance(group.offers, Web) for group in result.scenario.flows):
            part["response_s"] = _responses(result, seconds, count)
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _responses(result: Result, seconds: float, count: int) -> np.ndarray:
    """Mean response time of the short objects asked for in each part; NaN where there is none."""
    found = result.transfers
    short = (found["size"] < SHORT_OBJECT_BYTES) & np.isfinite(found["duration"])
    slots = (found["start"][short] / seconds).astype(int)
    inside = slots < count
    sums = np.bincount(slots[inside], weights=found["duration"][short][inside], minlength=count)
    number = np.bincount(slots[inside], minlength=count)
    return np.divide(sums, number, out=np.full(count, np.nan), where=number > 0)


def mean(data: pd.DataFrame, scheme: str, phase: str, column: str) -> float:
    """Mean over the seeds."""
    chosen = data[(data.scheme == scheme) & (data.phase == phase)]
    return float(chosen[column].mean())


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a study: tables and series of the fluid, of the full ns-3 runs that are kept, of a short one."""

    fluid: pd.DataFrame
    ns3: pd.DataFrame | None
    short: pd.DataFrame | None
    columns: dict[str, pd.DataFrame]


def find(study: Traffic, short: Scenario, phases: Sequence[Phase], schemes: Sequence[str]) -> Found:
    """Run the study in the fluid in full length and a short form in ns-3; read the full runs in ns-3 that are kept."""
    results = fluid(study)
    columns = {f"fluid, seed {SEEDS[0]}": series(study, results)}
    full, columns_of_full = study.full.kept(), study.full.kept("-series")
    brief = Traffic(study.name, short, {name: study.schemes[name] for name in schemes}, phases, study.link)
    packets = ns3(brief)
    if full is not None and columns_of_full is not None:
        columns[f"{full.simulator.iloc[0]}, seed {SEEDS[0]}"] = columns_of_full
    elif packets:
        columns[f"{next(iter(packets.values()))[0].simulator}, short form"] = series(brief, packets)
    return Found(
        fluid=table(study, results), ns3=full, short=table(brief, packets) if packets else None, columns=columns
    )


def together(found: Found) -> pd.DataFrame:
    """All tables in one, with the form of the run beside the simulator."""
    parts = (("full", found.fluid), ("full", found.ns3), ("short", found.short))
    frames = [part.assign(form=form) for form, part in parts if part is not None]
    return pd.concat(frames, ignore_index=True)


def caption(*figures: str) -> str:
    """The verdicts on some figures, in the fluid and in full runs in ns-3: a line each."""
    lines = ((place, verdicts("arc", *(f"{figure}, {place}" for figure in figures))) for place in ("fluid", "ns-3"))
    return "\n".join(f"{place}: {said}" for place, said in lines if said)


def picture(
    title: str,
    columns: Mapping[str, pd.DataFrame],
    verdict: str,
    rows: Sequence[str] = ("backlog_kb", "throughput_mbit_s", "loss_percent"),
) -> Figure:
    """Time series of all schemes, one column of panels for each simulator."""
    labels = {
        "backlog_kb": "backlog [kB]",
        "throughput_mbit_s": "throughput [Mbit/s]",
        "loss_percent": "loss [%]",
        "probability": "probability",
        "response_s": "response, objects < 12 kB [s]",
    }
    figure = Figure(figsize=(6.2 * len(columns), 2.5 * len(rows) + 1.2), layout="constrained")
    panels = figure.subplots(len(rows), len(columns), sharex="col", sharey="row", squeeze=False)
    for column, (name, data) in enumerate(columns.items()):
        for row, what in enumerate(rows):
            axes = panels[row, column]
            for scheme, part in data.groupby("scheme", sort=False):
                axes.plot(part.time_s, part[what], color=COLOURS[scheme], lw=1.1, label=scheme)
            axes.grid(color="#dddddd", lw=0.6)
            if column == 0:
                axes.set_ylabel(labels[what])
        panels[0, column].set_title(name, fontsize=10)
        panels[-1, column].set_xlabel("time [s]")
    for axes in panels[:, 0]:
        axes.set_ylim(bottom=0.0)  # of all columns: what is set before a curve is drawn doesn't grow with it
    curves = {
        label: curve for axes in panels[0] for curve, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    panels[0, 0].legend(curves.values(), curves.keys(), fontsize=8, ncols=2)
    figure.suptitle(title, fontsize=12)
    figure.supxlabel(verdict, fontsize=8.5)
    return figure
