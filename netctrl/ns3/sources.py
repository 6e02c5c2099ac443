"""The program for stock ns-3 that runs every scenario: its fixed files, and the laws that are printed from Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from threading import Lock

from netctrl.core.register import TCP_SENDERS, WINDOW_LAWS
from netctrl.laws.aqm.law import QueueLaw
from netctrl.laws.aqm.records import Queue
from netctrl.laws.link_rate.credit import Prices
from netctrl.laws.link_rate.distributed_step import LinkRates, command_link, link_acts, measure_link, start_links
from netctrl.laws.link_rate.fir import Feeds, FirSums
from netctrl.laws.pacing.arx import ArxParameters, ArxState, arx_pacing_step
from netctrl.laws.pacing.own_rate import own_rate_law_step
from netctrl.laws.pacing.own_rate_state import OwnRateParameters, OwnRateState
from netctrl.laws.rate.gate import pass_gate, set_gate
from netctrl.laws.tcp.htcp import htcp_backoff, htcp_increase
from netctrl.laws.tracking.reference_governor import ReferenceGovernor, govern
from netctrl.laws.tracking.schedule import GainSchedule, scheduled
from netctrl.laws.tracking.tracking import TrackingGains, TrackingState, curved, step_tracking
from netctrl.laws.window.law import WindowLaw
from netctrl.ns3.fabric.centre import Centre
from netctrl.ns3.laws import functions_header, laws_header, records_header, tcp_windows_header, window_laws_header
from netctrl.ns3.queues import library_laws, own_laws
from netctrl.plants.access import observe, read_premium

OWN_SENDERS = ("reno", "cubic", "htcp", "bbr")
"""Senders that ns-3 or a file of the program has."""

_ONE_AT_A_TIME = Lock()  # of threads: CPython 3.11 may fail where two parse sources at once (its issue 106905)
_ROOMS = ("common", "tcp_aqm", "network", "fabric")
TRACK_RECORDS = TrackingGains, TrackingState, ReferenceGovernor, GainSchedule
"""Parts of a law that tracks references, in the order of its records."""
_TRACK = "A law that tracks references, its governor and its schedule: printed from the Python that netctrl simulates."
_DELAYS = "What packets of a measured flow see: printed from the Python that netctrl simulates."
_CENTRE = "What hosts and ports of a data centre have in common: printed from the Python that writes it."
_LINK_LAW = "Rates of links by what each has heard: printed from the Python that netctrl simulates."
_GATES = "The gate of a regulator: printed from the Python that netctrl simulates."
_TCP_LAWS = "TCP's laws: printed from the Python that netctrl simulates."
_PACING_LAWS = "Pacing laws, one sample at a time: printed from the Python that netctrl runs."


def program_files(
    queues: Iterable[Queue] = (), senders: Iterable[str] = (), schemes: Iterable[WindowLaw] = ()
) -> dict[str, str]:
    """Sources of the program: file name -> text. They are the same for all scenarios whose laws are netctrl's.

    Parameters
    ----------
    queues : iterable of Queue
        Of the scenario, whose laws may be other packages'.
    senders : iterable of str
        Names of TCP's windows that are printed, which may be other packages'.
    schemes : iterable of WindowLaw
        Laws of senders in a data centre, the same.
    """
    with _ONE_AT_A_TIME:
        printed = _printed(tuple(own_laws(queues)), tuple(sorted(set(senders))), tuple(schemes))
    return {**printed, **_fixed()}


@cache
def _fixed() -> dict[str, str]:
    program = files("netctrl.ns3")
    return {
        place.name: place.read_text(encoding="utf-8")
        for room in _ROOMS
        for place in sorted((program / room / "cpp").iterdir(), key=lambda place: place.name)
    }


@cache
def _printed(queues: tuple[QueueLaw, ...], senders: tuple[str, ...], schemes: tuple[WindowLaw, ...]) -> dict[str, str]:
    ours = TCP_SENDERS.our_modules()
    window_laws = [
        WINDOW_LAWS[name] for name in WINDOW_LAWS if WINDOW_LAWS.module_of(name) in WINDOW_LAWS.our_modules()
    ]
    windows = {name for name in TCP_SENDERS if TCP_SENDERS.module_of(name) in ours and name not in OWN_SENDERS}
    pacing = ArxParameters, ArxState, OwnRateParameters, OwnRateState
    rates = start_links, link_acts, measure_link, command_link
    return {
        "netctrl-centre.h": records_header("centre", _CENTRE, [Centre]),
        "netctrl-laws.h": laws_header([*library_laws(), *queues], dual=True, scalable=[TCP_SENDERS["prague"]]),
        "netctrl-link-law.h": functions_header(
            "link-law", _LINK_LAW, rates, "netctrl-arrays.h", visited=(FirSums, Feeds, Prices, LinkRates)
        ),
        "netctrl-pacing-laws.h": functions_header(
            "pacing-laws", _PACING_LAWS, (arx_pacing_step, own_rate_law_step), visited=pacing
        ),
        "netctrl-gate-law.h": functions_header("gate-law", _GATES, (pass_gate, set_gate)),
        "netctrl-tcp-laws.h": functions_header("tcp-laws", _TCP_LAWS, (htcp_increase, htcp_backoff)),
        "netctrl-tracking-law.h": functions_header(
            "tracking-law",
            _TRACK,
            (curved, step_tracking, govern, scheduled),
            "netctrl-arrays.h",
            visited=TRACK_RECORDS,
        ),
        "netctrl-delay-laws.h": functions_header("delay-laws", _DELAYS, (observe, read_premium)),
        "netctrl-window-laws.h": window_laws_header([*window_laws, *schemes]),
        "netctrl-tcp-windows.h": tcp_windows_header(TCP_SENDERS[name] for name in windows | {*senders}),
    }
