"""What Figs. 13, 15 and 16 share: full runs in ns-3 that are kept, and means over them with 95 % intervals.

`python experiments/full.py NAME [RUN ...]` makes what is missing of a study and keeps each run in data/results/ as soon
as it is done. A figure shows what is kept, and runs a short form beside it.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import common
import msgspec
import pandas as pd
from common import Computed
from hftrac.networks import STEP
from packets import available, network_runs, run_networks
from study import Case, Made, Record, Study

from netctrl.model.network import Network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import Policy
from netctrl.scenario.network.traffic import LongRangeTraffic
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow


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
    short: Sequence[Case] = ()
    """Cases that run for a short time whenever the figure is drawn."""
    runs: int = 5

    def row(self, case: Case, run: int, result: Result) -> dict[str, object]:
        named = dict(zip(self.columns, case, strict=True))
        return named | {"run": run, "simulator": result.simulator} | dict(self.measure(result))

    @property
    def full(self) -> Study:
        """Its runs in full length."""
        return Study(
            name=self.name,
            key=(*self.columns, "run"),
            repeats=range(self.runs),
            cases=lambda run: [(*case, run) for case in self.cases],
            runs=self._made,
            record=self._record,
            sort=(*self.columns, "run"),
            file=f"{self.name}-ns3",
        )

    def _made(self, desired: Sequence[Case]) -> Iterator[tuple[Case, Made]]:
        """By one program for all."""
        scenarios = [self.scenario(case, self.seconds) for case in self.cases]
        numbers = [(list(self.cases).index(case[:-1]), case[-1]) for case in desired]
        for i, run, result in network_runs(scenarios, numbers):
            yield (*self.cases[i], run), Made([self.row(self.cases[i], run, result)], result)

    def _record(self, before: Record, data: pd.DataFrame, case: Case, result: Result) -> Record:
        source = msgspec.json.decode(msgspec.json.encode(result.provenance))
        made = before.get("made", [])
        batch = next((each for each in made if each["provenance"] == source), None)
        if batch is None:
            batch = {"simulator": result.simulator, "provenance": source, "runs": []}
            made.append(batch)
        batch["runs"].append([*case])
        return before | {"made": made, "first_scenario": self.scenario(self.cases[0], self.seconds)}

    def kept_runs(self) -> pd.DataFrame:
        """All kept runs, case by case; an error that says how to make them where some are missing."""
        requested = pd.MultiIndex.from_tuples([(*case, run) for case in self.cases for run in range(self.runs)])
        data = self.full.read(complete=True).set_index(list(self.full.key))
        return data.loc[requested].rename_axis(list(self.full.key)).reset_index()


def beside_udp(
    name: str, network: Network, policy: Policy, tcp: Iterable[Flow], seconds: float, warmup: float, **more: Any
) -> Scenario:
    """TCP beside background UDP with long-range dependence, for so many seconds that count."""
    return routed(
        network,
        name=name,
        interval=STEP,
        duration=warmup + seconds,
        warmup=warmup,
        control=policy,
        spread=LongRangeTraffic(),
        flows=tuple(tcp),
        **more,
    )


def short_over_kept(study: PacketStudy, data: pd.DataFrame, seconds: float, column: str) -> Computed:
    """A value in one short run of some cases, made now, over that of the kept runs; nothing without an ns-3."""
    if not available():
        return {}
    with warnings.catch_warnings(action="ignore"):  # delays are rounded to the sampling interval
        found = run_networks([study.scenario(case, seconds) for case in study.short], 1)
    brief = pd.DataFrame([study.row(case, 0, result) for case, result in zip(study.short, found, strict=True)])
    of_all, of_one = (each.set_index(list(study.columns))[column] for each in (means(data, study.columns), brief))
    return {f"{study.name.removeprefix('hftrac-')}-short": float((of_one / of_all[of_one.index]).mean())}


def means(data: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means over the runs."""
    numbers = data.select_dtypes("number").columns.difference([*by, "run"], sort=False)
    return common.means(data, by, numbers, sort=True)
