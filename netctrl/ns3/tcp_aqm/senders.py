"""Senders of flows as ns-3's program has them: their names, caps and pacing laws, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable

from netctrl.core.errors import InvalidValue
from netctrl.core.register import TCP_SENDERS
from netctrl.laws.codegen import field_texts
from netctrl.laws.pacing.arx import ArxParameters, ArxState, arx_settings, arx_start
from netctrl.laws.pacing.own_rate_state import OwnRateParameters, OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.rate.records import (
    FastSender,
    KernelTcp,
    has_pacer,
    is_l4s,
    pacer_of,
    rate_record,
    scheme_of,
    sender_name,
    window_of,
)
from netctrl.laws.rate.regulated import RegulatedSender
from netctrl.laws.record import row_names
from netctrl.model.law import ArxPacer, OwnRatePacer, PacingLaw
from netctrl.ns3.cpp import nanoseconds
from netctrl.ns3.laws import scalable_sender
from netctrl.ns3.links import SENDERS
from netctrl.ns3.records import record_line
from netctrl.ns3.sources import OWN_SENDERS
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.lacks import OF_KERNEL
from netctrl.scenario.tcp_aqm.offers import Bursts, Stream

_ECHOED = ("dctcp", "prague")
"""Senders whose receivers echo each mark, where packets can be marked; otherwise their windows are printed."""
_UNDERNEATH = "htcp"
"""Window law under a cap and under the paper's law."""
_MIN_RATE = 8.0
"""One byte per second; lower rates may round to 0 in ns-3's whole bit/s."""


def printed_senders(flows: Iterable[Flow]) -> list[str]:
    """Names of flows' window laws that are printed."""
    return [name for group in flows if (name := _printed(group)) is not None]


def _printed(group: Flow) -> str | None:
    """Name of a group's window law that is printed; None: it has another sender, or none."""
    name = sender_name(group.sender) if group.answered else None
    if name not in TCP_SENDERS or name in OWN_SENDERS or (name in _ECHOED and group.ecn):
        return None
    return name


def sender_lack(group: Flow) -> str | None:
    """What of a group ns-3's program lacks, in words; None: nothing."""
    name = sender_name(group.sender) if group.answered else group.kind
    if not group.answered:
        return None if isinstance(group.offers, Stream | Bursts) else f"{name} flows"
    if isinstance(group.sender, RegulatedSender):
        return "TCP behind regulators"
    if isinstance(group.sender, KernelTcp):
        return OF_KERNEL
    if isinstance(group.sender, FastSender):
        return f"{name}, which only the fluid has"
    if scheme_of(group.sender) is not None:
        return f"{name} over links"
    if isinstance(group.sender, CapSender) and group.sender.window != _UNDERNEATH:
        return f"cap but on {_UNDERNEATH}"
    if isinstance(group.sender, PacedSender) and group.sender.window not in (None, _UNDERNEATH):
        return f"pacing over {group.sender.window}"
    if rate_record(group.sender) is not None and name not in ("cap", *SENDERS) and not has_pacer(group.sender):
        return f"{name} senders"
    if is_l4s(group.sender):
        return f"{name} as a sender of L4S"
    if group.ecn and name in _ECHOED:
        return None if group.bulk else f"{name} but in bulk flows"
    printed = _printed(group)
    if printed is not None and group.ecn and TCP_SENDERS[printed].mark is not None:
        return f"marks for {name}, whose packets it only drops (ecn = false)"
    return None


def sender_values(group: Flow, pacers: list[PacingLaw]) -> dict[str, str | float]:
    """Values of a group's record for its sender.

    Parameters
    ----------
    group : Flow
    pacers : list of PacingLaw
        Laws with records, `laws_of`.

    Raises
    ------
    InvalidValue
        A law that the program can't run under or without a window.
    """
    if isinstance(group.offers, Stream):
        return {"rate": float(group.offers.rate), "even": group.offers.spacing == "constant"}
    name = sender_name(group.sender)
    if isinstance(group.sender, CapSender):
        return {"sender": _UNDERNEATH, "cap": group.sender.rate}
    law = pacer_of(group.sender)
    if law is not None:
        window = _UNDERNEATH if isinstance(law, ArxPacer) else None
        if window_of(group.sender) != window:
            takes = f"{window} under this law"
            raise InvalidValue(f"flows.{group.id}.sender.window", window_of(group.sender), takes)
        return {"sender": window or "paced", "pacer": _pacer(pacers.index(law))}
    if name in _ECHOED and group.ecn:
        return {"sender": SENDERS.get(name) or scalable_sender(TCP_SENDERS[name])}
    return {"sender": SENDERS[name] if name in OWN_SENDERS else name}


def laws_of(flows: Iterable[Flow]) -> list[PacingLaw]:
    """Pacing laws of flows, each once; InvalidValue for one that may stop."""
    found: list[PacingLaw] = []
    for group in flows:
        law = pacer_of(group.sender) if group.answered else None
        if law is None or law in found:
            continue
        if not law.least_rate_bit_per_s >= _MIN_RATE:
            takes = f"at least {_MIN_RATE:g} bit/s: at a rate of 0 no acknowledgement changes the rate; "
            raise InvalidValue("least_rate_bit_per_s", law.least_rate_bit_per_s, takes + "leave out --literal")
        found.append(law)
    return found


def pacer_records(laws: Iterable[PacingLaw]) -> list[str]:
    """A record of each law: its parameters, and what of its first state isn't 0."""
    return [_record(_pacer(number), law) for number, law in enumerate(laws)]


def _pacer(number: int) -> str:
    return f"law{number + 1}"


def _record(name: str, law: PacingLaw) -> str:
    memory = None
    if isinstance(law, OwnRatePacer):
        kind, records = "own-rate", (OwnRateParameters, OwnRateState)
        rows = own_rate_settings(law), own_rate_start(law)
    else:
        nanoseconds("period_s", law.period_s)
        kind, records, rows = "arx", (ArxParameters, ArxState), (arx_settings(law), arx_start(law))
        memory = 2 * (law.past_rtts + law.past_rates)
    lines = []
    for prefix, record, row in zip(("", "state."), records, rows, strict=True):
        texts = field_texts(record)
        numbers = zip(row_names(record), row.tolist(), strict=False)
        lines += [(prefix + field, repr(value), texts[field]) for field, value in numbers if value or not prefix]
    return record_line("pacer", name, *lines, law=kind, memory=memory)
