"""Access link: nodes in tandem that premium and regulated traffic cross, as in CONNET's simulations."""

from __future__ import annotations

from math import isclose
from typing import Any, ClassVar, Literal

from netctrl.errors import InvalidValue
from netctrl.model.io.fields import Duration, Rate, instant, number, one_of, rate, read_fields, records, whole
from netctrl.model.io.record_file import Record
from netctrl.scenario.access.flows import ACCESS_GROUPS, CrossFlow, PremiumFlow, RegulatedFlows
from netctrl.scenario.checks import OF_DATA_CENTRES, check_ids, check_unused

DISCIPLINES = ("fifo", "wfq", "cbq")
_MAX_PERIODS = 1e7
_MAX_FLOWS = 1000


class AccessLine(Record, frozen=True, kw_only=True, tag_field="kind", tag="access-link"):
    """Equal nodes in tandem, simulated packet by packet. Kinds of flows are premium, regulated and cross."""

    default_interval: ClassVar[float] = 1.0
    """Ts, interval of measurements and of the controller [s]."""

    capacity: Rate = 1e8
    """Capacity of each hop [bit/s]."""
    hops: int = 1
    """Nodes in the row."""
    limit: int = 100
    """Largest number of packets in a node, including the one being sent; with wfq and cbq in each queue."""
    discipline: Literal["fifo", "wfq", "cbq"] = "fifo"
    """Scheduler. wfq: a queue for each flow, equal weights. cbq: one queue for premium traffic and one for all other,
    by `premium_share`. Both are self-clocked fair queueing."""
    premium_share: float = 0.02
    """Share of the link for premium traffic with cbq."""
    access_rate: Rate = 1e8
    """Rate at which the packets of a burst arrive [bit/s]."""
    base_delay: Duration = 3.6e-4
    """Constant part of each premium packet's delay [s], for propagation and hosts; 0.36 ms fits the CONNET paper's
    figures."""

    def __post_init__(self) -> None:
        read_fields(self, capacity=rate, hops=whole(1, 100), limit=whole(1, 1_000_000), access_rate=rate)
        share = number("a share above 0, below 1", above=0.0, at_most=1.0 - 1e-9)
        read_fields(self, discipline=one_of(*DISCIPLINES), premium_share=share, base_delay=instant)

    def check(self, scenario: Any) -> None:
        """InvalidValue for parts of a `Scenario` that don't fit this link or each other."""
        read_fields(scenario, flows=records(*ACCESS_GROUPS))
        check_ids("flows", scenario.flows)
        if scenario.control is not None:
            takes = "nothing: a Design of connet controls an access link"
            raise InvalidValue("control", scenario.control.__struct_config__.tag, takes)
        _check_time(scenario)
        self._check_groups(scenario)
        self._check_rates(scenario)

    def _check_groups(self, scenario: Any) -> None:
        flows = scenario.flows
        premium = [each for each in flows if isinstance(each, PremiumFlow)]
        regulated = [each for each in flows if isinstance(each, RegulatedFlows)]
        cross = [each for each in flows if isinstance(each, CrossFlow)]
        if len(premium) != 1:
            raise InvalidValue("flows", f"{len(premium)} of kind premium", "one group of kind premium")
        if not regulated or sum(each.count for each in regulated) > _MAX_FLOWS:
            takes = f"one or more groups of kind regulated, with at most {_MAX_FLOWS} flows in total"
            raise InvalidValue("flows", f"{len(regulated)} of kind regulated", takes)
        total = sum(each.share for each in regulated)
        if not isclose(total, 1.0, rel_tol=1e-6):
            raise InvalidValue("flows", f"shares of {total:g} together", "regulated groups whose shares add up to 1")
        for each in cross:
            if each.hop >= self.hops:
                raise InvalidValue(f"flows.{each.id}.hop", each.hop, f"a hop from 0 to {self.hops - 1}")
        for each in regulated:
            if each.sender != regulated[0].sender:
                raise InvalidValue(f"flows.{each.id}.sender", each.sender, "the sender of all other regulated groups")
            if each.sender is not None and (cross or each.failures or self.discipline != "fifo"):
                takes = "discipline fifo, no cross traffic and no failures"
                raise InvalidValue(f"flows.{each.id}.sender", "TcpSenders", takes)

    def _check_rates(self, scenario: Any) -> None:
        for each in scenario.flows:
            where = f"flows.{each.id}"
            if isinstance(each, PremiumFlow) and each.rate > self.capacity:
                raise InvalidValue(f"{where}.rate", each.rate, f"at most the capacity, {self.capacity:g} bit/s")
            if isinstance(each, CrossFlow):
                self._check_rate(f"{where}.rate", each.rate, 1)
            if isinstance(each, RegulatedFlows):
                self._check_rate(f"{where}.offered", each.offered, each.count)
                for place, failure in enumerate(each.failures):
                    self._check_rate(f"{where}.failures[{place}].rate", failure.rate, each.count)

    def _check_rate(self, name: str, value: float, flows: int) -> None:
        most = flows * self.access_rate
        if value > most:
            carry = f"{flows} flows with an access_rate of {self.access_rate:g} bit/s carry"
            raise InvalidValue(name, value, f"at most the rate that {carry}, {most:g} bit/s")


def _check_time(scenario: Any) -> None:
    check_unused(scenario, "warmup", "step", *OF_DATA_CENTRES)
    periods = scenario.duration / scenario.interval
    if not 1.0 <= round(periods) <= _MAX_PERIODS or not isclose(periods, scenario.steps, rel_tol=1e-6):
        takes = f"a whole number of intervals of {scenario.interval:g} s, from 1 to {_MAX_PERIODS:g}"
        raise InvalidValue("duration", scenario.duration, takes)
