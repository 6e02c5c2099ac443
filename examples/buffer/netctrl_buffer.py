"""A design method of another package: how large a router's buffer should be for many TCP flows.

Source: Appenzeller, Keslassy, McKeown, "Sizing router buffers", SIGCOMM 2004: C RTT/sqrt(n) for n long flows whose
windows aren't synchronised, and C RTT for one.
"""

from __future__ import annotations

from math import sqrt
from typing import Annotated

import msgspec

from netctrl.cli.app import invocation
from netctrl.cli.design.common import Wanted, deliver
from netctrl.cli.options import RATE, TIME, kind
from netctrl.core.errors import checked_number, checked_whole
from netctrl.core.units import DURATION_TAKES, RATE_TAKES
from netctrl.model.design.base import Design

_FLOWS = kind("N", int, "a whole number")


class BufferInputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    flows: int
    rate_bit_per_s: float
    rtt_s: float


class BufferLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="buffer"):
    buffer_bytes: float


class BufferCertificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    status: str
    warnings: tuple[str, ...]
    delay_s: float
    """Of a full buffer."""


def _summary(inputs: BufferInputs, law: BufferLaw, proof: BufferCertificate) -> tuple[str, list[tuple[str, str]]]:
    title = f"Buffer for {inputs.flows} flows at {inputs.rate_bit_per_s / 1e6:g} Mbit/s"
    return title, [("buffer", f"{law.buffer_bytes:.0f} bytes"), ("full", f"{1e3 * proof.delay_s:.3g} ms")]


class BufferDesign(Design[BufferInputs, BufferLaw, BufferCertificate], frozen=True, tag="buffer"):
    """A buffer with what a full one means."""

    summarise = staticmethod(_summary)


def buffer(flows: int, rate_bit_per_s: float, rtt_s: float, *, argv: tuple[str, ...] = ()) -> BufferDesign:
    """C RTT/sqrt(n)."""
    n = checked_whole("flows", flows, "a number of flows from 1 on", at_least=1)
    C = checked_number("rate_bit_per_s", rate_bit_per_s, "a rate above 0 in bit/s", above=0.0)
    rtt = checked_number("rtt_s", rtt_s, "a time above 0 in seconds", above=0.0)
    few = () if n >= 100 else ("windows of fewer than 100 flows may be synchronised: they need C RTT",)
    return BufferDesign.of(
        BufferInputs(flows=n, rate_bit_per_s=C, rtt_s=rtt),
        BufferLaw(buffer_bytes=C * rtt / 8.0 / sqrt(n)),
        BufferCertificate(status="admissible", warnings=few, delay_s=rtt / sqrt(n)),
        argv=argv,
        libraries=(),
    )


def command(
    wanted: Wanted | None = None,
    *,
    flows: Annotated[int, _FLOWS("long TCP flows, as in 1000")],
    rate_bit_per_s: Annotated[float, RATE(f"of the link: {RATE_TAKES}")],
    rtt_s: Annotated[float, TIME(f"mean round trip without queues: {DURATION_TAKES}")],
) -> int:
    """Buffer: what a router needs for many TCP flows."""
    return deliver(wanted, lambda: buffer(flows, rate_bit_per_s, rtt_s, argv=invocation()))
