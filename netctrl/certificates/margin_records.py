"""Margins of a loop at one operating point, as they stand in a certificate."""

from __future__ import annotations

from netctrl.errors import Status
from netctrl.model.io.record_file import Record
from netctrl.units import format_quantity

__all__ = ["MIN_GAIN_DB", "MIN_PHASE_DEG", "LinearMargins", "SampledLoop", "SenderVerdict"]

MIN_GAIN_DB, MIN_PHASE_DEG = 6.0, 30.0
"""The design rule."""


class LinearMargins(Record, frozen=True):
    """Continuous loop as it is usually given, for comparison with published margins; the verdict doesn't use it.

    The law's nominal gains, TCP's window undelayed on itself, no queue in the round trip, no hold, no age of the
    reading.
    """

    sender: str
    """Sender of the worst corner."""
    rtt_s: float
    """R [s]."""
    window_packets: float
    """[packet]"""
    stable: bool
    """Whether the closed loop is stable."""
    gain_margin_db: float
    """[dB]"""
    phase_margin_deg: float
    """[degree]"""


class SampledLoop(Record, frozen=True):
    """Loop that runs, at its worst point: hold, age of the reading, queue, delayed windows and arithmetic counted."""

    sender: str
    """Sender of the worst point."""
    flows: float | None
    """Number of flows there, in the range that was asked for; null where the window is given."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    queue_delay_s: float
    """Standing delay of the queue [s]."""
    windows_packets: tuple[float, ...]
    """Windows of the classes of flows [packet]."""
    probabilities: tuple[float, ...]
    """Marking or loss probabilities of the classes."""
    stable: bool
    """Whether the closed loop is stable."""
    gain_margin_db: float
    """At the worst point [dB]; of an unstable loop, below 0, by how much the gain must fall: −inf, in JSON null, where
    no gain is stable."""
    gain_margin_db_proved: float | None
    """No point of the box has less [dB]; null where the loop is unstable, or only points were looked at."""
    gain_reduction_db: float | None
    """Factor by which the gain may fall at the worst point [dB]; null where it may fall to 0, or the loop is
    unstable."""
    phase_margin_deg: float
    """At the worst gain crossover [degree]."""
    delay_margin_s: float | None
    """Extra delay that the loop tolerates [s]; 0 where it is unstable, null where it is unlimited."""
    disk_margin: float
    """2/||S - T||; 0 where it is unstable."""
    capacity_bit_per_s: float | None = None
    """Rate of the link there [bit/s]; null where the window is given."""

    @property
    def keeps(self) -> bool:
        """Whether the margins are those of the design rule."""
        room = self.gain_reduction_db is None or -self.gain_reduction_db >= MIN_GAIN_DB
        return self.gain_margin_db >= MIN_GAIN_DB and self.phase_margin_deg >= MIN_PHASE_DEG and room

    @property
    def point(self) -> str:
        """The operating point in words."""
        rate = "" if self.capacity_bit_per_s is None else f" at {_quantity(self.capacity_bit_per_s, 'bit/s')}"
        flows = "" if self.flows is None else f"{self.flows:.4g} {'flow' if self.flows == 1.0 else 'flows'}{rate}, "
        return (
            f"{self.sender}, {flows}{_quantity(self.rtt_s, 's')} and {_quantity(self.queue_delay_s, 's')} of queue, "
            f"windows {', '.join(f'{w:.4g}' for w in self.windows_packets)}"
        )


class SenderVerdict(Record, frozen=True):
    """Verdict of a box with one of its senders."""

    sender: str
    """Sender or mixture."""
    status: Status
    """As in `QueueVerdict`."""
    sampled: SampledLoop | None
    """The loop that runs, at this sender's point of least gain margin; null without an equilibrium."""


def _quantity(value: float, unit: str) -> str:
    return format_quantity(float(f"{value:.4g}"), unit)
