"""Certificates of networks of queues, from scenarios of links and long flows."""

from __future__ import annotations

from collections.abc import Iterable
from math import degrees, inf
from pathlib import Path
from typing import Literal

from netctrl.certificates.box import MIN_GAIN_DB, MIN_PHASE_DEG, MIN_WINDOW
from netctrl.certificates.certify import described
from netctrl.certificates.networks.margins import (
    GAIN_CAP,
    Limits,
    alone_margins,
    covered,
    limits_of,
    proved_margins,
    scanned,
)
from netctrl.certificates.networks.record import (
    NETWORK_SCHEMA,
    CertifiedFlows,
    CertifiedLink,
    NetworkCertificate,
    NetworkMargins,
    NetworkVerdict,
)
from netctrl.certificates.networks.scenario import CertifiedNetwork, network_of
from netctrl.errors import Status, checked_kind
from netctrl.frequency.matrix.disk import multiloop_disk_margin
from netctrl.frequency.matrix.proofs import Box, avoids_zero
from netctrl.frequency.records import decibel
from netctrl.model.io.provenance import provenance
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium, network_equilibrium
from netctrl.scenario.scenario import Scenario
from netctrl.units import BITS_PER_BYTE

__all__ = ["certify_network"]

_MIN_FACTOR = 10.0 ** (MIN_GAIN_DB / 20.0)
_FULL = 1e-6
"""Relative excess over its rate from which a link is overloaded."""


def certify_network(scenario: Scenario, *, argv: Iterable[str] = (), inputs: Iterable[Path] = ()) -> NetworkCertificate:
    """Certificate of several queues at once: margins of the loop that all their laws and all flows close.

    Which links queue follows from the flows; each law acts on its own queue, and flows answer the marks of their whole
    path, after the exact delays from each queue back to the sender and from there, through the queues before, to each
    queue. det(1 + L) is followed on the unit circle, with bounds between the points (generalised Nyquist criterion).

    Parameters
    ----------
    scenario : Scenario
        Links with queues of kind pie, pi2, dualpi2, pi, red, or the kernel's pie and dualpi2 (`kind = "qdisc"`); others
        must be drop-tail and idle. Bulk flows without an end, of reno, cubic, dctcp or prague.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    NetworkCertificate

    Raises
    ------
    InvalidValue
        What no linear loop describes, named by its place in the scenario; a link without a law that would be
        overloaded; bottlenecks in a ring, or such that it isn't determined which of them queues.
    NetctrlError
        No decision, for a loop at its limit to many digits.

    Notes
    -----
    Derived in the documentation, "Certificates of queues", section "Several bottlenecks", and in
    `netctrl.plants.queue_networks.response`.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.certify_network(netctrl.read("parking-lot"))
    >>> found.certificate.status.value, round(found.certificate.margins.gain_margin_db, 1)
    ('admissible', 12.7)
    """
    checked_kind("scenario", scenario, Scenario)
    found = network_of(scenario)
    equilibrium = network_equilibrium(found.network)
    absent = _absent(equilibrium)
    loop = None if absent else covered(NetworkLoop(equilibrium))
    verdict, alone = (_infeasible(found, absent), {}) if loop is None else _verdict(found, loop)
    return NetworkCertificate(
        schema=NETWORK_SCHEMA,
        name=scenario.name,
        packet_size_bytes=scenario.traffic.packet_size,
        links=_links(scenario, found, equilibrium, alone),
        flows=_flows(scenario, equilibrium),
        certificate=verdict,
        provenance=provenance(argv=argv, inputs=inputs, libraries=("numpy",)),
    )


def _absent(found: NetworkEquilibrium) -> str:
    """Why there is no equilibrium that the loop describes; empty: there is one."""
    for k, link in enumerate(found.network.links):
        if link.ranges and (found.outputs[k] >= link.greatest * (1.0 - 1e-9) or found.loads[k] > 1.0 + _FULL):
            return f"link {link.name}: the law's output would be above {link.greatest:.4g}; there {link.beyond}"
    for group, window in zip(found.network.groups, found.windows, strict=True):
        if window < MIN_WINDOW * (1.0 - 1e-9):
            return (
                f"flows {group.name}: windows of {window:.3g} packets; below {MIN_WINDOW:g} senders wait for "
                "time-outs, which no window law describes"
            )
    return ""


def _verdict(found: CertifiedNetwork, loop: NetworkLoop) -> tuple[NetworkVerdict, dict[int, float]]:
    scan = scanned(loop)
    limits = limits_of(scan)
    stable = limits.unstable == 0
    decides = limits.upper if stable else limits.lower
    proved = proved_margins(loop, limits) if stable and loop.exact else (None, None, None)
    alone = alone_margins(scan) if stable else {}
    margins = NetworkMargins(
        stable=stable,
        unstable_poles=limits.unstable,
        gain_margin_db=None if decides is None else decibel(decides.gain),
        gain_margin_db_proved=proved[0],
        gain_margin_db_any_phase=proved[1],
        gain_reduction_db=decibel(limits.lower.gain) if stable and limits.lower is not None else None,
        phase_margin_deg=degrees(limits.phase_rad),
        phase_margin_deg_proved=proved[2],
        disk_margin=multiloop_disk_margin(loop.at, scan.angles, scan.matrices) if stable else 0.0,
        crossing_rad_s=None if decides is None else decides.angle / loop.epoch,
    )
    warnings = (*_about(loop, limits), *_notes(found, loop))
    method = "sampled" if loop.sampled else "continuous" if loop.exact else "approximate"
    verdict = NetworkVerdict(
        status=_status(loop, limits, margins), method=method, margins=margins, warnings=tuple(dict.fromkeys(warnings))
    )
    return verdict, alone


def _infeasible(found: CertifiedNetwork, absent: str) -> NetworkVerdict:
    return NetworkVerdict(status=Status.INFEASIBLE, method="none", margins=None, warnings=(absent,))


def _status(loop: NetworkLoop, limits: Limits, margins: NetworkMargins) -> Status:
    if limits.unstable:
        return Status.UNSTABLE
    gain = margins.gain_margin_db_proved if loop.exact else margins.gain_margin_db
    phase = margins.phase_margin_deg_proved if loop.exact else margins.phase_margin_deg
    held = (gain is None or gain >= MIN_GAIN_DB) and (phase or 0.0) >= MIN_PHASE_DEG
    if loop.exact:
        held = held and avoids_zero(loop.disc, Box(gain=(1.0 / _MIN_FACTOR, 1.0)))
    else:
        held = held and (limits.lower is None or limits.lower.gain <= 1.0 / _MIN_FACTOR)
    return Status.ADMISSIBLE if held else Status.STABLE


def _about(loop: NetworkLoop, limits: Limits) -> list[str]:
    """Cautions: parts of this loop that aren't exact."""
    if loop.exact:
        return []
    decides = limits.upper or limits.lower
    share = 0.0 if decides is None else loop.aliased(decides.angle)
    return [
        "the laws act at intervals that differ: each is taken with its hold and its own interval, without the aliases "
        f"of sampling, which are {share:.1%} of the response at the limit; nothing is proved"
    ]


def _notes(found: CertifiedNetwork, loop: NetworkLoop) -> list[str]:
    laws = [found.laws[k] for k in loop.equilibrium.marking]
    notes = [note for law in laws if law is not None for note in law.notes]
    full = [found.network.links[k].name for k in loop.equilibrium.order if loop.equilibrium.outputs[k] == 0.0]
    if full:
        notes.append(f"{', '.join(full)}: full without a mark; what reaches its law's target is not in the loop")
    return notes


def _links(
    scenario: Scenario, found: CertifiedNetwork, equilibrium: NetworkEquilibrium, alone: dict[int, float]
) -> tuple[CertifiedLink, ...]:
    links = []
    for k, (link, law) in enumerate(zip(scenario.links, found.laws, strict=True)):
        state: Literal["marks", "full", "idle"] = "idle"
        if k in equilibrium.order:
            state = "marks" if equilibrium.outputs[k] > 0.0 else "full"
        factor = alone.get(k, inf)
        links.append(
            CertifiedLink(
                name=link.id,
                capacity_bit_per_s=link.capacity,
                state=state,
                load=float(equilibrium.loads[k]),
                queue_delay_s=float(equilibrium.delays[k]),
                output=float(equilibrium.outputs[k]),
                gain_margin_db=decibel(factor) if factor < GAIN_CAP else None,
                law=None if law is None else described(law),
            )
        )
    return tuple(links)


def _flows(scenario: Scenario, equilibrium: NetworkEquilibrium) -> tuple[CertifiedFlows, ...]:
    bits = scenario.traffic.packet_size * BITS_PER_BYTE
    return tuple(
        CertifiedFlows(
            name=group.name,
            flows=group.flows,
            sender=flows.sender,
            path=flows.path,
            rtt_s=group.rtt_s,
            round_trip_s=float(trip),
            window_packets=float(window),
            probability=float(p),
            rate_bit_per_s=float(window / trip * bits),
        )
        for group, flows, trip, window, p in zip(
            equilibrium.network.groups,
            scenario.flows,
            equilibrium.trips,
            equilibrium.windows,
            equilibrium.marked,
            strict=True,
        )
    )
