"""Task of the program that runs an access link in the kernel, and what it leaves: files in the folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from netctrl.laws.tracking.reference_governor import ReferenceGovernor
from netctrl.laws.tracking.tracking import TrackingState
from netctrl.model.io.arrays import array, plain
from netctrl.model.law import TrackingLaw
from netctrl.scenario.access.flows import CrossFlow, PremiumFlow, RegulatedFlows
from netctrl.scenario.access.network import AccessLine
from netctrl.scenario.access.periods import Periods
from netctrl.scenario.access.plan import AccessLinkPlan
from netctrl.scenario.access.result import AccessLinkSample
from netctrl.scenario.access.scenario import AccessLinkParts

_TASK, _PAUSES, _PERIODS = "access.msgpack", "pauses.npz", "periods.msgpack"


class AccessDraws(NamedTuple):
    """Random draws of a run."""

    premium_phase: float
    """Time of the first premium packet [s]."""
    pauses: Sequence[np.ndarray]
    """Pauses of each flow over their means, regulated ones first; the first is the rest of that in which it begins."""


class LawTask(msgspec.Struct, frozen=True):
    """A plan's law."""

    law: TrackingLaw
    reference: np.ndarray
    signals: tuple[str, ...]
    scale: np.ndarray
    rate_unit: float
    state: TrackingState
    start: int
    governor: ReferenceGovernor | None


class AccessTask(msgspec.Struct, frozen=True, kw_only=True):
    """What the program has to do. H hops."""

    line: AccessLine
    premium: PremiumFlow
    regulated: tuple[RegulatedFlows, ...]
    cross: tuple[CrossFlow, ...]
    packet_size: float
    interval: float
    periods: int
    law: LawTask | None
    """None: regulators are open."""
    hosts: dict[int, int]
    """Namespace of the host whose packets enter at a hop."""
    addresses: tuple[int, ...]
    """(H,) where packets go that leave after a hop."""
    ends: tuple[int, ...]
    """(H,) namespaces of these addresses."""
    queues: tuple[tuple[int, int], ...]
    """(H,) namespace and interface of each hop's queue."""
    wires: tuple[tuple[int, int], ...]
    """(H,) the same of the packets that are being sent."""

    @property
    def parts(self) -> AccessLinkParts:
        """Of the scenario."""
        return AccessLinkParts(self.line, self.premium, self.regulated, self.cross, self.packet_size)


class _Left(msgspec.Struct, frozen=True):
    """What the program leaves."""

    samples: tuple[AccessLinkSample, ...]
    given: np.ndarray | None = None
    measured: np.ndarray | None = None
    commanded: np.ndarray | None = None


def law_task(plan: AccessLinkPlan | None) -> LawTask | None:
    """The law of a plan without a schedule of gains."""
    if plan is None:
        return None
    return LawTask(
        plan.law, plan.reference, plan.signals, plan.scale, plan.rate_unit, plan.state, plan.start, plan.governor
    )


def plan_of(task: LawTask) -> AccessLinkPlan:
    """The plan again."""
    return AccessLinkPlan(
        law=task.law,
        reference=task.reference,
        signals=task.signals,
        scale=task.scale,
        rate_unit=task.rate_unit,
        state=task.state,
        start=task.start,
        governor=task.governor,
        schedule=None,
    )


def write_task(task: AccessTask, draws: AccessDraws, folder: Path) -> None:
    """Write a task where the program finds it."""
    (folder / _TASK).write_bytes(msgspec.msgpack.encode(task, enc_hook=plain))
    lengths = np.array([len(each) for each in draws.pauses], dtype=np.int64)
    np.savez(folder / _PAUSES, phase=draws.premium_phase, lengths=lengths, pauses=np.concatenate(draws.pauses))


def read_task(folder: Path) -> tuple[AccessTask, AccessDraws]:
    """The task inside."""
    task = msgspec.msgpack.decode((folder / _TASK).read_bytes(), type=AccessTask, dec_hook=array)
    with np.load(folder / _PAUSES, allow_pickle=False) as found:
        pauses = np.split(found["pauses"], np.cumsum(found["lengths"])[:-1])
        return task, AccessDraws(float(found["phase"]), pauses)


def write_periods(samples: Sequence[AccessLinkSample], found: Periods | None, folder: Path) -> None:
    """Leave what a run's periods brought; without a law there are only samples."""
    rest = () if found is None else (found.given, found.measured, found.commanded)
    (folder / _PERIODS).write_bytes(msgspec.msgpack.encode(_Left(tuple(samples), *rest), enc_hook=plain))


def periods_of(folder: Path) -> Periods:
    """What the program has left; without a law only samples."""
    left = msgspec.msgpack.decode((folder / _PERIODS).read_bytes(), type=_Left, dec_hook=lambda _, rows: np.array(rows))
    none = np.zeros((len(left.samples), 0))
    given, measured, commanded = (
        none if each is None else each for each in (left.given, left.measured, left.commanded)
    )
    return Periods(left.samples, given, measured, commanded)
