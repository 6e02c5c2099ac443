"""Certificates of networks of queues, from scenarios of links and long flows.

The laws of all queues that mark close one loop of several signals, with the matrix response L(z) from the laws' outputs
to what they read (`netctrl.plants.queue_networks.response`). It is stable where det(1 + L) has no zero outside the unit
circle: zeros are counted by the turns of its argument, as one counts a single loop's (generalised Nyquist criterion,
MacFarlane, Postlethwaite, 1977). Common factors of all gains, or phases of all loops, move the eigenvalues of L
together, so margins are where these meet −1; proofs bound the determinant itself, whose zeros don't depend on how
eigenvalues are numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import degrees, inf, radians
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from netctrl.certificates.box import MIN_FACTOR, MIN_GAIN_DB, MIN_PHASE_DEG, MIN_WINDOW
from netctrl.certificates.certify import described
from netctrl.certificates.networks.box import (
    BoxProof,
    NetworkRange,
    Worst,
    box_proof,
    network_reach,
    ranges_of,
    worst_of,
)
from netctrl.certificates.networks.margins import GAIN_CAP, alone_margins, covered, limits_of, proved_margins, scanned
from netctrl.certificates.networks.record import (
    NETWORK_SCHEMA,
    CertifiedFlows,
    CertifiedLink,
    CertifiedRange,
    NetworkBox,
    NetworkCertificate,
    NetworkMargins,
    NetworkVerdict,
)
from netctrl.certificates.networks.scenario import CertifiedNetwork, Changed, network_of
from netctrl.core.errors import Status, checked_kind
from netctrl.core.units import BITS_PER_BYTE, long_rtt
from netctrl.frequency.matrix import avoids_zero, multiloop_disk_margin
from netctrl.frequency.records import decibel
from netctrl.laws.rate.records import sender_name
from netctrl.model.io.provenance import provenance
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.equilibrium import NetworkEquilibrium, network_equilibrium
from netctrl.scenario.scenario import Scenario

Ranges = Mapping[str, float | tuple[float, float]] | None
"""Values or ranges (low, high) by names."""
_FULL = 1e-6
"""Relative excess over its rate from which a link is overloaded."""


def certify_network(
    scenario: Scenario,
    *,
    rtt_s: Ranges = None,
    flows: Ranges = None,
    capacity_bit_per_s: Ranges = None,
    reach: bool = False,
    argv: Iterable[str] = (),
    inputs: Iterable[Path] = (),
) -> NetworkCertificate:
    """Certificate of several queues at once: margins of the loop that all their laws and all flows close.

    Which links queue follows from the flows; each law acts on its own queue, and flows answer the marks of their whole
    path, after the exact delays from each queue back to the sender and from there, through the queues before, to each
    queue. det(1 + L) is followed on the unit circle, with bounds between the points (generalised Nyquist criterion).

    Parameters
    ----------
    scenario : Scenario
        Links with queues of kind pie, pi2, dualpi2, pi, red, or the kernel's pie and dualpi2 (`kind = "qdisc"`); others
        must be drop-tail and idle. Bulk flows without an end, of reno, cubic, dctcp or prague.
    rtt_s, flows : mapping, optional
        Round-trip times [s] and numbers of flows of groups by their names, each a value or a range (low, high), in
        place of the scenario's. Ranges make a box: the certificate is that of its worst point, and says whether the
        design rule is proved at every point. At most six ranges.
    capacity_bit_per_s : mapping, optional
        The same for rates of links [bit/s].
    reach : bool
        Also search how far 6 dB are kept: with longer round-trip times, and with fewer flows.
    argv, inputs : iterable of str and of Path
        Command line and files, for the provenance.

    Returns
    -------
    NetworkCertificate

    Raises
    ------
    InvalidValue
        What no linear loop describes, named by its place in the scenario; a link without a law that would be
        overloaded; bottlenecks in a ring, or such that it isn't determined which of them queues. An unknown name, or
        an empty range.
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
    >>> found = netctrl.certify_network(netctrl.read("parking-lot"), rtt_s={"long": (0.03, 0.06)})
    >>> found.box.proved, round(found.box.ranges[0].worst, 3)
    (True, 0.03)
    """
    checked_kind("scenario", scenario, Scenario)
    ranges = ranges_of(scenario, {"rtt": rtt_s, "flows": flows, "capacity": capacity_bit_per_s})
    changed = {each.changed: each.low for each in ranges}
    worst = None

    def loop_at(at: Mapping[Changed, float]) -> tuple[str, NetworkLoop | None]:
        equilibrium = network_equilibrium(network_of(scenario, at).network)
        absent = _absent(equilibrium)
        return absent, None if absent else NetworkLoop(equilibrium)

    if any(each.low < each.high for each in ranges):
        worst = worst_of(ranges, loop_at)
        changed = dict(worst.at)
    found = network_of(scenario, changed)
    equilibrium = network_equilibrium(found.network)
    absent, box = _absent(equilibrium), None
    if absent:
        verdict = NetworkVerdict(status=Status.INFEASIBLE, method="none", margins=None, warnings=(absent,))
        alone: dict[int, float] = {}
    else:
        verdict, alone = _verdict(found, covered(NetworkLoop(equilibrium)))
    if worst is not None:
        verdict, box = _in_box(scenario, ranges, worst, verdict)
    longest = [each.high for each in ranges if each.kind == "rtt"]
    longest += [group.rtt[1] for group in scenario.flows if ("rtt", group.id) not in changed]
    verdict = replace(verdict, warnings=(*long_rtt(max(longest, default=0.0)), *verdict.warnings))
    return NetworkCertificate(
        schema=NETWORK_SCHEMA,
        name=scenario.name,
        packet_size_bytes=scenario.packet_size,
        links=_links(scenario, found, equilibrium, alone),
        flows=_flows(scenario, equilibrium),
        certificate=verdict,
        provenance=provenance(argv=argv, inputs=inputs, libraries=("numpy",)),
        box=box,
        reach=network_reach(scenario, changed, loop_at, MIN_FACTOR) if reach and not absent else None,
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


def _in_box(
    scenario: Scenario, ranges: tuple[NetworkRange, ...], worst: Worst, verdict: NetworkVerdict
) -> tuple[NetworkVerdict, NetworkBox]:
    """Verdict of the worst point with what other points have, and the box with what is proved in it."""
    proof = BoxProof(
        False, None, "it has unstable points" if not worst.absent else "it has points without an equilibrium"
    )
    status = verdict.status
    if status in (Status.ADMISSIBLE, Status.STABLE):
        proof = box_proof(scenario, ranges, worst)
    held = worst.phase_rad >= radians(MIN_PHASE_DEG) and worst.lower <= 1.0 / MIN_FACTOR
    if status is Status.ADMISSIBLE and not held:
        status = Status.STABLE
    box = NetworkBox(
        ranges=tuple(
            CertifiedRange(kind=r.kind, name=r.name, low=r.low, high=r.high, worst=worst.at[r.changed]) for r in ranges
        ),
        points=worst.points,
        phase_margin_deg=degrees(worst.phase_rad),
        proved=proof.rule,
        gain_margin_db_proved=None if proof.factor is None else decibel(proof.factor),
        why_not=proof.why_not,
    )
    notes = (f"between the {box.points} points nothing is proved: {box.why_not}",) if box.why_not else ()
    return replace(verdict, status=status, warnings=(*verdict.warnings, *notes)), box


def _verdict(found: CertifiedNetwork, loop: NetworkLoop) -> tuple[NetworkVerdict, dict[int, float]]:
    """Verdict at a point, and gain margins of single laws by the link's place."""
    scan = scanned(loop)
    limits = limits_of(scan)
    stable = limits.unstable == 0
    decides = limits.upper if stable else limits.lower
    proved = proved_margins(loop, limits) if stable and loop.exact else (None, None, None)
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
    warnings = []
    if loop.exact:
        gain, phase = margins.gain_margin_db_proved, margins.phase_margin_deg_proved
    else:
        gain, phase = margins.gain_margin_db, margins.phase_margin_deg
        decides = limits.upper or limits.lower
        share = 0.0 if decides is None else loop.aliased(decides.angle)
        warnings.append(
            "the laws act at intervals that differ: each is taken with its hold and its own interval, without the "
            f"aliases of sampling, which are {share:.1%} of the response at the limit; nothing is proved"
        )
    status = Status.UNSTABLE
    if stable:
        held = (gain is None or gain >= MIN_GAIN_DB) and (phase or 0.0) >= MIN_PHASE_DEG
        if loop.exact:
            held = held and avoids_zero(loop.disc, gain=(1.0 / MIN_FACTOR, 1.0))
        else:
            held = held and (limits.lower is None or limits.lower.gain <= 1.0 / MIN_FACTOR)
        status = Status.ADMISSIBLE if held else Status.STABLE
    laws = [found.laws[k] for k in loop.equilibrium.marking]
    warnings += [note for law in laws if law is not None for note in law.notes]
    full = [found.network.links[k].name for k in loop.equilibrium.order if loop.equilibrium.outputs[k] == 0.0]
    if full:
        warnings.append(f"{', '.join(full)}: full without a mark; what reaches its law's target is not in the loop")
    method = "sampled" if loop.sampled else "continuous" if loop.exact else "approximate"
    verdict = NetworkVerdict(status=status, method=method, margins=margins, warnings=tuple(dict.fromkeys(warnings)))
    return verdict, alone_margins(scan) if stable else {}


def _links(
    scenario: Scenario, found: CertifiedNetwork, equilibrium: NetworkEquilibrium, alone: dict[int, float]
) -> tuple[CertifiedLink, ...]:
    links = []
    for k, (link, law, capacity) in enumerate(zip(scenario.links, found.laws, found.capacities, strict=True)):
        state: Literal["marks", "full", "idle"] = "idle"
        if k in equilibrium.order:
            state = "marks" if equilibrium.outputs[k] > 0.0 else "full"
        factor = alone.get(k, inf)
        links.append(
            CertifiedLink(
                name=link.id,
                capacity_bit_per_s=capacity,
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
    bits = scenario.packet_size * BITS_PER_BYTE
    return tuple(
        CertifiedFlows(
            name=group.name,
            flows=group.flows,
            sender=sender_name(flows.sender),
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
