"""Queueing disciplines that run, from the output of `tc qdisc show`, with laws in the kernel's arithmetic.

Options of disciplines as `tc -j` prints them, with the law that they describe.

Times are in us, thresholds of red in bytes, PIE's gains in sixteenths of 1/s and DualPI2's in 1/s with six digits.
What tc prints is what the kernel reports, and that is rounded: the laws are those that lead to these numbers.

Sources: iproute2 6.1 and 7.1, tc/q_pie.c, q_fq_pie.c, q_dualpi2.c, q_red.c, lib/json_writer.c; their output on Linux
7.2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import msgspec

from netctrl.certificates.codel import CodelSubject, cake, codel, fq_codel
from netctrl.certificates.inputs.queue import Input, InstalledQueue
from netctrl.certificates.inputs.tc_text import tc_entries
from netctrl.core.errors import FileError, InvalidValue, did_you_mean
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.laws.targets.dualpi2 import DUALPI2_MAX, Dualpi2Law, dualpi2_shown
from netctrl.laws.targets.integers import U32, checked_u32, u32
from netctrl.laws.targets.jiffies import HZ, KNOWN_HZ, jiffies_of_us, longest_us, us_of_jiffies
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw
from netctrl.model.io.validation_errors import explained, shorten

_FIFO = "it has no queue management of its own"
NO_LAW: dict[str, str] = {
    **dict.fromkeys(("noqueue", "pfifo", "bfifo", "pfifo_fast", "fq", "etf", "cbs", "skbprio"), _FIFO),
    **dict.fromkeys(("mq", "mqprio", "multiq", "prio", "htb", "hfsc", "drr", "ets", "qfq", "tbf"), _FIFO),
    **dict.fromkeys(("ingress", "clsact", "netem", "taprio", "plug"), _FIFO),
    "choke": "besides RED it drops packets of the flow of one that it draws from the queue: not linear",
    "sfq": "its optional RED for each flow isn't read",
    "gred": "its REDs for each kind of traffic aren't read",
    "sfb": "its probabilities for each bin of flows aren't read",
    "hhf": "it separates large flows and doesn't control a delay",
}
"""Disciplines of Linux without a law that can be certified by a linear loop, and why."""

UNKNOWN = "[Unknown qdisc]"
"""Key in place of what tc prints, not JSON, for the options of a discipline that is newer than itself."""
_NOT_JSON = re.compile(rb"\[Unknown qdisc[^]]{0,40}\]")
_ARGUMENTS = {"target_ticks": "target", "update_jiffies": "tupdate", "ecn_percent": "ecn_prob"}


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A discipline; counters beside these keys aren't looked at."""

    kind: str
    handle: str
    dev: str = ""
    root: bool = False
    parent: str = ""
    options: dict[str, Any] = {}
    prob: float | None = None


def read_tc(given: Input) -> tuple[InstalledQueue, ...]:
    """Queues from the output of `tc -j qdisc show`, `tc -j -s qdisc show` or, with red, `tc -j -d qdisc show`.

    A discipline that can't be read doesn't hide the others: it is an unreadable queue, whose `reason` names the option.

    Parameters
    ----------
    given : Input
        The output; by default CONFIG_HZ is the one that the intervals of all pie and fq_pie tell, which a note of these
        queues names.

    Returns
    -------
    tuple of InstalledQueue
        All that are in the output, in its order.

    Raises
    ------
    FileError
        Not tc's list, or no discipline.
    """
    source, parsed, hz = given
    if isinstance(parsed, str):
        parsed = tc_entries(parsed, UNKNOWN)
    if parsed == []:
        raise FileError(source, "no queueing discipline in it")
    entries = [_entry(each, number) for number, each in enumerate(parsed)]
    read = [each for each in entries if isinstance(each, _Entry)]
    if not read:
        try:
            msgspec.convert(parsed, list[_Entry])
        except msgspec.ValidationError as error:
            what = explained(error, parsed, list[_Entry])
            raise FileError(source, f"not the output of `tc -j qdisc show`: {what}") from None
    clock = inferred_hz(each.options.get("tupdate") for each in read if each.kind in ("pie", "fq_pie"))
    return tuple(_queue(each, hz, clock) if isinstance(each, _Entry) else each for each in entries)


def as_json(content: bytes) -> bytes:
    """tc's output with a key in place of what isn't JSON in it."""
    return _NOT_JSON.sub(f'"{UNKNOWN}": true'.encode(), content)


def _entry(given: Any, number: int) -> _Entry | InstalledQueue:
    """One member of tc's list, or a queue that says why it isn't a discipline."""
    try:
        return msgspec.convert(given, _Entry)
    except msgspec.ValidationError as error:
        kind = given.get("kind") if isinstance(given, dict) else None
        return InstalledQueue(
            kind=shorten(kind) if isinstance(kind, str) else "queue",
            handle=f"number {number + 1} of the list",
            reason=explained(error, given, _Entry),
            unreadable=True,
        )


def _queue(entry: _Entry, hz: int | None, clock: Mapping[int, int]) -> InstalledQueue:
    parent = "root" if entry.root else entry.parent
    queue = InstalledQueue(kind=entry.kind, device=entry.dev, handle=entry.handle, parent=parent)
    if entry.kind in NO_LAW:
        return replace(queue, reason=NO_LAW[entry.kind])
    kind = OPTIONS.get(entry.kind)
    if kind is None:
        hint = did_you_mean(entry.kind, [*OPTIONS, *NO_LAW])
        return replace(queue, reason=f"unknown discipline {shorten(entry.kind)!r}{hint}", unreadable=True)
    if UNKNOWN in entry.options:
        why = "this tc doesn't know the discipline: a newer iproute2 does (dualpi2: 6.18 on)"
        return replace(queue, reason=why, unreadable=True)
    try:
        options = msgspec.convert(entry.options, kind)
        inferred = clock.get(options.tupdate) if isinstance(options, PieOptions) and hz is None else None
        law = options.law(hz or inferred or HZ)
    except msgspec.ValidationError as error:
        return replace(queue, reason=explained(error, entry.options, kind), unreadable=True)
    except InvalidValue as error:
        return queue.unread(InvalidValue(_ARGUMENTS.get(error.argument, error.argument), error.got, error.takes))
    notes = () if inferred is None else (f"CONFIG_HZ is taken as {inferred}, which tupdate tells; else give --hz",)
    return replace(queue, law=law, probability=entry.prob, notes=notes)


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
        us = checked_u32("target", self.target, "target in us")
        # The kernel keeps ticks of 64 ns, of which 125 are 8 us, and shows them rounded down.
        sent = us if us % 8 in (0, 7) else min(us + 1, U32)
        what = f"time between updates in us at {hz} Hz"
        tupdate = checked_u32("tupdate", self.tupdate, what, at_least=1, at_most=longest_us(hz))
        if not _whole(tupdate, hz):
            others = [str(other) for other in KNOWN_HZ if _whole(tupdate, other)]
            remedy = f"; it is one at CONFIG_HZ = {' or '.join(others)}" if others else ""
            takes = f"a whole number of the kernel's ticks in us, here at {hz} Hz{remedy}"
            raise InvalidValue("tupdate", tupdate, takes)
        return PieLaw(
            target_ticks=sent * 1000 // 64,
            update_jiffies=jiffies_of_us(tupdate, hz),
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
        if self.probability is None:  # an older tc's
            plog = checked_u32("Plog", self.plog, "power of two", at_most=255)
            most = u32((U32 >> plog if plog < 32 else U32) * max(self.max - self.min, 1))
        elif 0.0 < self.probability <= 1.0:
            most = min(max(int(self.probability * 2**32), 1), U32)
        else:
            raise InvalidValue("probability", self.probability, "a probability above 0")
        return RedLaw(
            min_bytes=self.min,
            max_bytes=self.max,
            weight_log=self.ewma,
            max_probability=most,
            limit_bytes=self.limit,
            ecn=self.ecn,
            harddrop=self.harddrop,
            nodrop=self.nodrop,
            adaptive=self.adaptive,
        )


class CodelOptions(Options, frozen=True, kw_only=True):
    """Options of codel."""

    limit: int
    target: int
    interval: int
    ecn: bool = False
    ce_threshold: int | None = None

    def law(self, hz: int) -> CodelSubject:
        """The law; packets of senders without ECN are dropped whatever `ecn` is."""
        return self.noted(codel(target_s=self.target * 1e-6, interval_s=self.interval * 1e-6))

    def noted(self, subject: CodelSubject) -> CodelSubject:
        """With a note of a threshold beside the law."""
        why = "ce_threshold marks packets of senders with ECN beside CoDel: the cycle is that of senders without"
        return subject if self.ce_threshold is None else replace(subject, notes=(why,))


class FqCodelOptions(CodelOptions, frozen=True, kw_only=True):
    """Options of fq_codel."""

    flows: int
    quantum: int
    memory_limit: int | None = None
    drop_batch: int | None = None
    ce_threshold_selector: int | None = None
    ce_threshold_mask: int | None = None

    def law(self, hz: int) -> CodelSubject:
        """The law of each flow's queue."""
        return self.noted(fq_codel(target_s=self.target * 1e-6, interval_s=self.interval * 1e-6))


class CakeOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Options of cake that its COBALT depends on; of the others only the shares of hosts and flows do."""

    rtt: int
    bandwidth: int | str = "unlimited"

    def law(self, hz: int) -> CodelSubject:
        """The law of each flow's queue."""
        own = "its shaper has no bandwidth" if isinstance(self.bandwidth, str) else f"its bandwidth is {self._rate}"
        return replace(cake(rtt_s=self.rtt * 1e-6), notes=(f"{own}: the cycle is that at the capacity of the box",))

    @property
    def _rate(self) -> str:
        return format_quantity(float(self.bandwidth) * BITS_PER_BYTE, "bit/s")


OPTIONS: dict[str, type[Options]] = {
    "pie": PieOptions,
    "fq_pie": FqPieOptions,
    "dualpi2": Dualpi2Options,
    "red": RedOptions,
    "codel": CodelOptions,
    "fq_codel": FqCodelOptions,
    "cake": CakeOptions,
}
"""Kind of discipline -> its options."""


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
