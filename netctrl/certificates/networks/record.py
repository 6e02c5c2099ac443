"""Certificate of a network of queues: what queues where, the margins of all laws together, and the verdict."""

from __future__ import annotations

import os
from typing import Literal

from netctrl.certificates.point_records import rounded
from netctrl.certificates.record import ANSWERS, CertifiedLaw
from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.io.display import Rows, Shown
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import FileRecord, Record, read_record

NETWORK_SCHEMA = "netctrl.network_certificate/1"
_MAX_BYTES = 2**26


class CertifiedLink(Record, frozen=True):
    """A link in equilibrium."""

    name: str
    """Id in the scenario."""
    capacity_bit_per_s: float
    """Rate [bit/s]."""
    state: Literal["marks", "full", "idle"]
    """marks: a queue that the law holds. full: a queue below the point at which the law marks. idle: no queue."""
    load: float
    """Traffic that comes to the link, over its rate."""
    queue_delay_s: float
    """Standing delay [s]."""
    output: float
    """Output of the law; 0 where it doesn't mark."""
    gain_margin_db: float | None
    """By how much this law's gain may grow alone, with the others as they are; of an unstable network, null [dB].
    Found on a grid of angles. null also where it is above 60 dB."""
    law: CertifiedLaw | None
    """Law that runs; null for a buffer alone."""


class CertifiedFlows(Record, frozen=True):
    """A group of flows in equilibrium."""

    name: str
    """Id in the scenario."""
    flows: float
    """How many."""
    sender: str
    """Window law."""
    path: tuple[str, ...]
    """Links, in order."""
    rtt_s: float
    """Round-trip time without queues [s]."""
    round_trip_s: float
    """With them [s]."""
    window_packets: float
    """Of a flow [packet]."""
    probability: float
    """That a packet is marked on its path."""
    rate_bit_per_s: float
    """Of a flow [bit/s]."""


class NetworkMargins(Record, frozen=True):
    """Margins of the loop that all laws close together."""

    stable: bool
    """Whether the closed loop is stable; counted with proof."""
    unstable_poles: int
    """Number of the closed loop's unstable poles."""
    gain_margin_db: float | None
    """By how much the gains of all laws may grow together [dB]; of an unstable loop, below 0, by how much they must
    fall. null: above 60 dB, or no smaller gains help."""
    gain_margin_db_proved: float | None
    """No smaller factor makes the loop unstable, proved at all angles [dB]; null where it is unstable or not exact."""
    gain_margin_db_any_phase: float | None
    """The same whatever the instants are at which the laws act, each at its interval [dB]; null where they don't share
    one."""
    gain_reduction_db: float | None
    """By how much the gains of all laws may fall together [dB]; null: to 0, or the loop is unstable."""
    phase_margin_deg: float
    """Phase that all laws may lose or win together; 0 where the loop is unstable [degree]."""
    phase_margin_deg_proved: float | None
    """Proved at all angles [degree]; null where the loop is unstable or not exact."""
    disk_margin: float
    """Disks in which the factors of all laws may be at once, each in its own; 0 where the loop is unstable."""
    crossing_rad_s: float | None
    """Frequency at which the loop oscillates at its limit [rad/s]; null where there is none."""


class NetworkVerdict(Record, frozen=True):
    """Margins and verdict."""

    status: Status
    """admissible: all laws keep 6 dB and 30 degrees together. infeasible: no equilibrium that the loop describes."""
    method: Literal["sampled", "continuous", "approximate", "none"]
    """sampled: laws that act at one interval, exact. continuous: averaging laws, exact. approximate: intervals that
    differ, each law with its hold and without its aliases."""
    margins: NetworkMargins | None
    """null without an equilibrium."""
    warnings: tuple[str, ...]
    """Assumptions of the verdict, and what the loop leaves out."""


class CertifiedRange(Record, frozen=True):
    """Range of a quantity of the scenario."""

    kind: Literal["rtt", "flows", "capacity"]
    """rtt: round-trip time without queues [s]. flows: number of flows. capacity: of a link [bit/s]."""
    name: str
    """Group of flows, or link."""
    low: float
    """Least value."""
    high: float
    """Greatest value."""
    worst: float
    """Value at the worst point."""


class NetworkBox(Record, frozen=True):
    """Box of operating points of a network; the certificate's links, flows and margins are those of its worst point."""

    ranges: tuple[CertifiedRange, ...]
    """Quantities with a range."""
    points: int
    """Number of points that were looked at."""
    phase_margin_deg: float
    """Least of these points [degree]; 0 without a stable one."""
    proved: bool
    """True where 6 dB and 30 degrees are proved at every point of the box."""
    gain_margin_db_proved: float | None
    """No point of the box has less [dB]; null: only points were looked at."""
    why_not: str
    """Why nothing is proved between the points; empty: something is."""


class NetworkReach(Record, frozen=True):
    """Reach of 6 dB of gain margin, of all laws together, at every point that was looked at, without proof."""

    rtt_factor: float | None
    """By how much all round-trip times without queues may grow together; null: not at all."""
    flows_divisor: float | None
    """By how much all numbers of flows may be divided; null: not at all."""


class NetworkCertificate(Shown, FileRecord, frozen=True):
    """Certificate of a network of queues by `netctrl certify network`, saved as one file.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.certify_network(netctrl.read("parking-lot"))
    >>> [link.state for link in found.links]
    ['marks', 'marks', 'idle']
    """

    schema: Literal["netctrl.network_certificate/1"]
    """Version of the file format."""
    name: str
    """Of the scenario."""
    packet_size_bytes: float
    """[byte]"""
    links: tuple[CertifiedLink, ...]
    """In the scenario's order."""
    flows: tuple[CertifiedFlows, ...]
    """In the scenario's order; empty without an equilibrium."""
    certificate: NetworkVerdict
    """What holds."""
    provenance: Provenance
    """Provenance of the certificate."""
    box: NetworkBox | None = None
    """Box whose worst point this is; null: one point."""
    reach: NetworkReach | None = None
    """Reach of 6 dB from this point, where it was asked for."""

    @property
    def verdict(self) -> str:
        """Whether the network is stable, in one sentence."""
        status, box = self.certificate.status, self.box
        about = " (approximately: the laws' intervals differ)" if self.certificate.method == "approximate" else ""
        marking = [link.name for link in self.links if link.state == "marks"]
        where = f" with bottlenecks {', '.join(marking)}" if marking else ""
        between = ""
        if box is not None and status in (Status.ADMISSIBLE, Status.STABLE):
            proved = box.proved or (box.gain_margin_db_proved is not None and status is Status.STABLE)
            between = f" at the {box.points} points of the box that were looked at, not proved between them"
            between = ", proved at every point of the box" if proved else between
        return f"{self.name}{where}: {ANSWERS[status]}{about}{between}"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """(name, text) of what people read."""
        rows = [] if self.box is None else _box_rows(self.box)
        rows += [(f"link {link.name}", _link_text(link)) for link in self.links]
        for group in self.flows:
            text = f"{group.flows:g} {group.sender} over {', '.join(group.path)}: windows {group.window_packets:.4g}, "
            rows.append(
                (f"flows {group.name}", f"{text}{rounded(group.round_trip_s, 's')}, marked {group.probability:.3g}")
            )
        if (found := self.certificate.margins) is not None:
            rows += _margin_rows(found)
        if (reach := self.reach) is not None:
            text = "not here"
            if reach.rtt_factor is not None and reach.flows_divisor is not None:
                text = f"with all round-trip times up to {reach.rtt_factor:.3g} times as long, or all numbers of flows "
                text += f"down to 1/{reach.flows_divisor:.3g}"
            rows.append(("keeps 6 dB", text))
        return rows

    def _shown(self) -> Rows:
        return self.verdict, self.rows


def read_network_certificate(path: str | os.PathLike[str]) -> NetworkCertificate:
    """Read a network's certificate from its file.

    Raises
    ------
    FileError
        The file can't be read, or has an unknown, missing or unusable key, which the message names.
    """
    return read_record(
        path, NetworkCertificate, schema=NETWORK_SCHEMA, what="network's certificate", max_bytes=_MAX_BYTES
    )


def _link_text(link: CertifiedLink) -> str:
    what = f"{'no law' if link.law is None else link.law.name} at {format_quantity(link.capacity_bit_per_s, 'bit/s')}"
    if link.state == "idle":
        return f"{what}, idle: {link.load:.3g} of its rate"
    what = f"{what}, {rounded(link.queue_delay_s, 's')} of queue"
    if link.state == "full":
        return f"{what}, too little to mark"
    alone = "" if link.gain_margin_db is None else f", gain margin alone {link.gain_margin_db:.2f} dB"
    return f"{what}, output {link.output:.4g}{alone}"


def _box_rows(box: NetworkBox) -> list[tuple[str, str]]:
    texts = []
    for each in box.ranges:
        unit = {"rtt": "s", "flows": "", "capacity": "bit/s"}[each.kind]
        low, high, worst = (
            rounded(value, unit) if unit else f"{value:.4g}" for value in (each.low, each.high, each.worst)
        )
        span = low if each.low == each.high else f"{low} to {high}, worst {worst}"
        texts.append(f"{each.kind} of {each.name}: {span}")
    gain = "" if box.gain_margin_db_proved is None else f"gain margin {box.gain_margin_db_proved:.2f} dB (proved), "
    texts.append(f"{gain}phase margin {box.phase_margin_deg:.1f} degrees at {box.points} points")
    return [("box" if k == 0 else "", text) for k, text in enumerate(texts)]


def _margin_rows(found: NetworkMargins) -> list[tuple[str, str]]:
    gain = "above 60 dB" if found.gain_margin_db is None else f"{found.gain_margin_db:.2f} dB"
    if not found.stable:
        gain = "at no smaller gain" if found.gain_margin_db is None else gain
        return [("all laws together", f"{found.unstable_poles} unstable poles, gain margin {gain}")]
    if found.gain_margin_db_proved is not None:
        gain += f" (proved {found.gain_margin_db_proved:.2f} dB)"
    if found.gain_reduction_db is not None:
        gain += f", may fall by {-found.gain_reduction_db:.2f} dB"
    rows = [("all laws together", f"gain margin {gain}, phase margin {found.phase_margin_deg:.1f} degrees")]
    apart = f"disk margin {found.disk_margin:.2f} of each law, all at once"
    if found.gain_margin_db_any_phase is not None:
        apart = f"{found.gain_margin_db_any_phase:.2f} dB whenever the laws act, {apart}"
    return [*rows, ("", apart)]
