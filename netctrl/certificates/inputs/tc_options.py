"""Options of disciplines as `tc -j` prints them, with the law that they describe.

Times are in us, thresholds of red in bytes, PIE's gains in sixteenths of 1/s and DualPI2's in 1/s with six digits.
What tc prints is what the kernel reports, and that is rounded: the laws are those that lead to these numbers.

Sources: iproute2 6.1 and 7.1, tc/q_pie.c, q_fq_pie.c, q_dualpi2.c, q_red.c, lib/json_writer.c; their output on Linux
7.2.13.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import msgspec

from netctrl.errors import InvalidValue
from netctrl.laws.targets.dualpi2 import DUALPI2_MAX, Dualpi2Law, dualpi2_shown
from netctrl.laws.targets.integers import U32, checked_u32, u32
from netctrl.laws.targets.jiffies import HZ, KNOWN_HZ, jiffies_of_us, longest_us, us_of_jiffies
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw

__all__ = ["OPTIONS", "Options", "PieOptions", "inferred_hz"]

_DEFAULT_US = 15_000
"""Time between updates of a pie that is added without `tupdate` [us]."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of one kind of discipline."""

    def law(self, hz: int) -> Any:
        """The law in the kernel's arithmetic; InvalidValue names an option that it can't have."""
        raise NotImplementedError


class PieOptions(Options, frozen=True, kw_only=True):
    """Options of pie."""

    limit: int
    target: int
    tupdate: int
    alpha: int
    beta: int
    ecn: bool = False
    bytemode: bool = False
    dq_rate_estimator: bool = False

    def law(self, hz: int) -> PieLaw:
        """The law of the queue, or of each of fq_pie's."""
        return PieLaw(
            target_ticks=_sent_target(self.target) * 1000 // 64,
            update_jiffies=_jiffies(self.tupdate, hz),
            alpha=self.alpha,
            beta=self.beta,
            limit=self.limit,
            ecn=self.ecn,
            bytemode=self.bytemode,
            dq_rate_estimator=self.dq_rate_estimator,
            hz=hz,
        )


class FqPieOptions(PieOptions, frozen=True, kw_only=True):
    """Options of fq_pie."""

    flows: int
    quantum: int
    memory_limit: int
    ecn_prob: int

    def law(self, hz: int) -> PieLaw:
        """The law of each flow's queue."""
        return replace(PieOptions.law(self, hz), ecn_percent=self.ecn_prob, flows=self.flows)


class Dualpi2Options(Options, frozen=True, kw_only=True, rename="kebab"):
    """Options of dualpi2."""

    limit: int
    memory_limit: int
    target: int
    tupdate: int
    alpha: float
    beta: float
    min_qlen_step: int
    coupling: int
    drop_overload: Literal["drop", "overflow"]
    drop_early: Literal["drop-enqueue", "drop-dequeue"]
    c_protection: int
    ecn_mask: Literal["l4s-ect", "any-ect"]
    step_thresh_us: int | None = None
    step_thresh_pkts: int | None = None
    split_gso: None = None

    def law(self, hz: int) -> Dualpi2Law:
        """The law, whose timer doesn't depend on `hz`."""
        if self.step_thresh_us is None and self.step_thresh_pkts is None:
            raise InvalidValue("step-thresh-us", None, "a threshold of the step in us, or step-thresh-pkts in packets")
        return Dualpi2Law.sent(
            target_us=self.target,
            tupdate_us=self.tupdate,
            alpha=_sent_gain("alpha", self.alpha),
            beta=_sent_gain("beta", self.beta),
            coupling=self.coupling,
            drop_overload=self.drop_overload == "drop",
            drop_early=self.drop_early == "drop-enqueue",
            step_us=self.step_thresh_us,
            step_packets=self.step_thresh_pkts,
            min_qlen_step=self.min_qlen_step,
            ecn_mask=1 if self.ecn_mask == "l4s-ect" else 3,
            limit=self.limit,
        )


class RedOptions(Options, frozen=True, kw_only=True):
    """Options of red."""

    limit: int
    min: int
    max: int
    ecn: bool = False
    harddrop: bool = False
    adaptive: bool = False
    nodrop: bool = False
    ewma: int | None = None
    probability: float | None = None
    plog: int | None = msgspec.field(default=None, name="Plog")
    scell_log: int | None = msgspec.field(default=None, name="Scell_log")
    qevents: list[Any] = []

    def law(self, hz: int) -> RedLaw:
        """The law, which acts at each arrival."""
        if self.ewma is None or (self.probability is None and self.plog is None):
            missing = "ewma" if self.ewma is None else "probability"
            raise InvalidValue(missing, None, "a value, which tc prints with -d: `tc -d -j qdisc show`")
        return RedLaw(
            min_bytes=self.min,
            max_bytes=self.max,
            weight_log=self.ewma,
            max_probability=self._max_probability(),
            limit_bytes=self.limit,
            ecn=self.ecn,
            harddrop=self.harddrop,
            nodrop=self.nodrop,
            adaptive=self.adaptive,
        )

    def _max_probability(self) -> int:
        if self.probability is not None:
            if not 0.0 < self.probability <= 1.0:
                raise InvalidValue("probability", self.probability, "a probability above 0")
            return min(max(int(self.probability * 2**32), 1), U32)
        plog = checked_u32("Plog", self.plog, "power of two", at_most=255)
        return u32((U32 >> plog if plog < 32 else U32) * max(self.max - self.min, 1))


OPTIONS: dict[str, type[Options]] = {
    "pie": PieOptions,
    "fq_pie": FqPieOptions,
    "dualpi2": Dualpi2Options,
    "red": RedOptions,
}
"""Kind of discipline -> its options."""


def _sent_target(shown: int) -> int:
    """Target in us that is shown as this one: the kernel keeps ticks of 64 ns, of which 125 are 8 us."""
    checked_u32("target", shown, "target in us")
    return shown if shown % 8 in (0, 7) else min(shown + 1, U32)


def _jiffies(shown: int, hz: int) -> int:
    most = longest_us(hz)
    checked_u32("tupdate", shown, f"time between updates in us at {hz} Hz", at_least=1, at_most=most)
    if _whole(shown, hz):
        return jiffies_of_us(shown, hz)
    others = [str(other) for other in KNOWN_HZ if _whole(shown, other)]
    remedy = f"; it is one at CONFIG_HZ = {' or '.join(others)}" if others else ""
    raise InvalidValue("tupdate", shown, f"a whole number of the kernel's ticks in us, here at {hz} Hz{remedy}")


def _whole(shown: int, hz: int) -> bool:
    return 0 < shown <= longest_us(hz) and us_of_jiffies(jiffies_of_us(shown, hz), hz) == shown


def inferred_hz(shown: Iterable[object]) -> dict[int, int]:
    """CONFIG_HZ of the kernel that shows these times between pie's updates [us], by time.

    Each is a whole number of the kernel's ticks. Where several frequencies fit all of them, it is the one at which a
    time is shown that stands for the default of 15 ms (20000, 16000, 16666 and 15000 us at 100, 250, 300 and 1000 Hz),
    else 250 Hz. A time that fits no frequency is left out; times that fit none together have one each.

    Examples
    --------
    >>> inferred_hz([15_000, 20_000]), inferred_hz([20_000]), inferred_hz([16_667])
    ({15000: 1000, 20000: 1000}, {20000: 100}, {})
    """
    fits = {us: [hz for hz in KNOWN_HZ if _whole(us, hz)] for us in shown if type(us) is int}
    fits = {us: hzs for us, hzs in fits.items() if hzs}
    common = [hz for hz in KNOWN_HZ if all(hz in hzs for hzs in fits.values())]

    def likeliest(hzs: list[int], times: Iterable[int]) -> int:
        named = [hz for hz in hzs if us_of_jiffies(jiffies_of_us(_DEFAULT_US, hz), hz) in times]
        return named[0] if named else HZ if HZ in hzs else hzs[0]

    return {us: likeliest(common, fits) if common else likeliest(hzs, [us]) for us, hzs in fits.items()}


def _sent_gain(name: str, shown: float) -> int:
    """Number of 1/256 Hz that tc has sent where it shows this gain with six digits."""
    told = round(min(max(shown, 0.0), 2.0**24) * 256.0)
    sent = told if told and dualpi2_shown(told) == told else told + 1
    if not sent <= DUALPI2_MAX or float(f"{told / 256.0:g}") != shown:
        raise InvalidValue(name, shown, "a gain in 1/s as tc prints it, a multiple of 1/256 with six digits")
    return sent
