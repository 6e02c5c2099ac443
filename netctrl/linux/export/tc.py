"""Designs for Linux: batch files for tc(8), desired queues for `netctrl linux apply`, and agents' files.

| Design | implemented by |
|---|---|
| HFTraC | a TBF per link, whose rate an agent sets (`netctrl.linux.export.agents`) |
| CONNET | a TBF per regulator, whose rate an agent sets (the same) |
| ARC | a TBF with `pie` or `dualpi2` inside, or an eBPF classifier in front of it whose probability is set each epoch |
| pacing | the sender itself, by SO_MAX_PACING_RATE: no queue |
| MPCC | nothing |

Rendering is pure. A value that can't be expressed is an error; a rounded one is a `QuantizedValue`.
"""

from __future__ import annotations

from typing import NoReturn

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, checked_flag, checked_kind
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.linux.export import shaper
from netctrl.linux.export.aqm import Dualpi2, Pie, pie_range
from netctrl.model.design.design import ArcDesign, MpccDesign, PacingDesign


def arc_on_linux(
    design: ArcDesign,
    interface: str,
    aqm: Pie | Dualpi2 | None,
    settings: shaper.TcSettings = shaper.AS_DESIGNED,
    *,
    drop: bool = False,
) -> shaper.TcExport:
    """The bottleneck as a TBF at the Design's capacity, with ARC in it.

    Parameters
    ----------
    design : ArcDesign
    interface : str
    aqm : Pie, Dualpi2 or None
        Rounded gains (`netctrl.linux.export.aqm`), whose margins have been checked; None: marking by eBPF.
    settings : TcSettings
        The packet size is the Design's, whatever the framing. Without a limit, the buffer holds the greatest
        bandwidth-delay product and twice the target queue.
    drop : bool
        With eBPF: whether packets without ECN are dropped when drawn. The qdiscs always drop them.

    Raises
    ------
    InvalidValue
        An invalid name, or a value that the kernel can't represent.
    """
    checked_kind("design", design, ArcDesign)
    checked_kind("settings", settings, shaper.TcSettings)
    if aqm is not None and not isinstance(aqm, Pie | Dualpi2):
        raise InvalidValue("aqm", aqm, "a Pie, a Dualpi2, or None for marks in front of the queue")
    drop = checked_flag("drop", drop)
    law, inputs = design.law, design.inputs
    framing = shaper.Framing(law.packet_size_bytes, settings.framing.header)
    rate = law.capacity_bit_per_s
    buffer = rate / BITS_PER_BYTE * inputs.rtt_s[1] + 2.0 * law.target_queue_packets * law.packet_size_bytes
    limit = buffer if settings.limit is None else settings.limit
    burst = shaper.default_burst(rate * framing.growth, framing) if settings.burst is None else settings.burst
    queue = shaper.token_bucket(interface, rate, burst, limit, framing=framing)
    title = f"ARC: a bottleneck of {format_quantity(rate, 'bit/s')} in packets of {law.packet_size_bytes:g} bytes"
    if aqm is None:
        config = shaper.MarkingConfig(interface=interface, law=law, header_bytes=framing.header, drop=drop)
        files = shaper.queue_files("arc", [queue], f"{title}; `python -m netctrl linux mark` marks in front of it")
        notes = (
            "the queue is read once per epoch; packets' own waiting times stay unknown",
            "packets without ECN are dropped when drawn" if drop else "packets without ECN pass unmarked",
        )
        return shaper.TcExport(files | {"arc.marking.json": config.to_json()}, queue.figures, notes)
    packets, waiting = shaper.nearest(
        "limit in packets", limit / law.packet_size_bytes, step=1.0, unit="packet", most=2**31 - 1, bound=0.1
    )
    inside = shaper.queue_below(queue, aqm.tokens(packets), (*aqm.figures, waiting))
    notes = (
        f"plans don't support {aqm.tokens(packets)[0]}: apply it by tc -batch, remove it by "
        f"`tc qdisc del dev {interface} root`",
        aqm.shown,
    )
    if isinstance(aqm, Pie):
        low, high = pie_range(design.certificate.operating_point.marking_probability)
        notes += (
            f"pie has these gains for marking probabilities from {low:g} to {high:g}, and other gains outside",
            "margins hold for small deviations: below half its target pie marks nothing, so it may oscillate after a "
            "large deviation; dualpi2 has no such rule",
        )
    return shaper.TcExport({"arc.tc": shaper.batch(inside.lines, title)}, inside.figures, notes)


def pacing_on_linux(design: PacingDesign) -> shaper.TcExport:
    """The sender's Design without a queue: the sender paces itself by SO_MAX_PACING_RATE, in whole bytes per second.

    Raises
    ------
    InvalidValue
        A rate that the socket option can't represent.
    """
    law = design.law
    figures = []
    for name in ("least_rate_bit_per_s", "start_rate_bit_per_s", "max_rate_bit_per_s"):
        bits = getattr(law, name)
        _, figure = shaper.nearest(name, bits, step=float(BITS_PER_BYTE), unit="bit/s", most=2**62, bound=1e-3)
        figures.append(figure)
    notes = (
        "`python -m netctrl linux pace --design` runs a program with it; tc isn't needed",
        "the rate counts bytes of TCP, a TBF counts frames: full segments at a cap of 97 % of a TBF's rate fill it",
    )
    return shaper.TcExport({"sender.design.json": design.to_json()}, tuple(figures), notes)


def mpcc_on_linux(design: MpccDesign) -> NoReturn:
    """Always raises NoAdmissibleDesign: Linux has no implementation of this law."""
    raise NoAdmissibleDesign(
        "Linux can't run MPCC: at each acknowledgement the law sets a window from the queue and the number of flows "
        "at the fullest switch, which switches would have to write into packets. The kernel's queues don't write them, "
        "and no program can set a TCP window that often. `export ns3` runs it with such switches",
        design,
    )
