"""What Figs. 13, 15 and 16 share: full runs in ns-3 that are kept, and means over them with 95 % intervals.

`python experiments/full.py NAME [RUN ...]` makes what is missing of a study and keeps each run in data/results/ as soon
as it is done. A figure shows what is kept, and runs a short form beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pandas as pd
from packets import available, network_runs, run_networks
from study_files import RESULTS, read_runs, write_record, write_runs

from netctrl.ns3.network.render import PACKET_SIZE
from netctrl.scenario.figures import estimate
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario

Case = tuple[Hashable, ...]
"""What tells one point of a figure from another, in the order of the study's columns."""


@dataclass(frozen=True, slots=True)
class PacketStudy:
    """One figure's points: scenarios of the same links and times, and what is measured of one run."""

    name: str
    columns: Sequence[str]
    cases: Sequence[Case]
    scenario: Callable[[Case, float], Scenario]
    """Of a case, for so many seconds that count."""
    measure: Callable[[Result], Mapping[str, float]]
    """Of a result of one run."""
    seconds: float
    runs: int = 5
    packet_size: int = PACKET_SIZE

    def row(self, case: Case, run: int, result: Result) -> dict[str, object]:
        named = dict(zip(self.columns, case, strict=True))
        return named | {"run": run, "simulator": result.simulator} | dict(self.measure(result))


def missing(study: PacketStudy, runs: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers of cases, and of those of these runs, that are not kept."""
    kept = stored(study)
    done = set() if kept is None else set(zip(*(kept[name] for name in (*study.columns, "run")), strict=True))
    return [(i, run) for run in runs for i, case in enumerate(study.cases) if (*case, run) not in done]


def make(study: PacketStudy, desired: Sequence[tuple[int, int]]) -> Iterator[tuple[Case, int]]:
    """Run and keep; says what as it is kept."""
    scenarios = [study.scenario(case, study.seconds) for case in study.cases]
    for i, run, result in network_runs(scenarios, desired, study.packet_size):
        keep(study, study.cases[i], run, result)
        yield study.cases[i], run


def keep(study: PacketStudy, case: Case, run: int, result: Result) -> None:
    """Add one full run to data/results/: its row, and where it comes from."""
    table, record = (RESULTS / f"{study.name}-ns3.{kind}" for kind in ("csv", "json"))
    rows = pd.DataFrame([study.row(case, run, result)])
    if table.exists():
        rows = pd.concat([pd.read_csv(table), rows], ignore_index=True)
    rows = rows.sort_values([*study.columns, "run"], kind="stable")
    write_runs(table, rows)
    content = msgspec.json.decode(record.read_bytes()) if record.exists() else {"study": study.name, "made": []}
    source = msgspec.json.decode(msgspec.json.encode(result.provenance))
    batch = next((each for each in content["made"] if each["provenance"] == source), None)
    if batch is None:
        batch = {"simulator": result.simulator, "provenance": source, "runs": []}
        content["made"].append(batch)
    batch["runs"].append([*case, run])
    content["first_scenario"] = study.scenario(study.cases[0], study.seconds)
    write_record(record, content)


def stored(study: PacketStudy) -> pd.DataFrame | None:
    """A row a case and run that is kept, or None."""
    return read_runs(RESULTS / f"{study.name}-ns3.csv")


def kept_runs(study: PacketStudy) -> pd.DataFrame:
    """All kept runs of a study; an error that says how to make them where some are missing."""
    lacking = missing(study, range(study.runs))
    data = stored(study)
    if data is None or lacking:
        raise FileNotFoundError(f"{len(lacking)} runs are missing: python experiments/full.py {study.name}")
    requested = pd.MultiIndex.from_tuples([(*case, run) for case in study.cases for run in range(study.runs)])
    return data.set_index([*study.columns, "run"]).loc[requested].rename_axis([*study.columns, "run"]).reset_index()


def short(study: PacketStudy, cases: Sequence[Case], seconds: float) -> pd.DataFrame | None:
    """One run of some cases, made now; None without an ns-3."""
    if not available():
        return None
    found = run_networks([study.scenario(case, seconds) for case in cases], 1, study.packet_size)
    return pd.DataFrame([study.row(case, 0, result) for case, result in zip(cases, found, strict=True)])


def means(data: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means over the runs; `NAME_half` is half the width of their 95 % intervals."""
    rows = []
    for key, part in data.groupby(list(by), sort=True):
        values = part.drop(columns=[*by, "run"]).select_dtypes("number")
        found = {name: estimate(column.to_numpy()) for name, column in values.items()}
        row = dict(zip(by, key, strict=True)) | {name: each.mean for name, each in found.items()}
        rows.append(row | {f"{name}_half": each.half_width for name, each in found.items()})
    return pd.DataFrame(rows)
