"""DualPI2: a queue for scalable senders beside the classic one, coupled by one PI law. Source: RFC 9332, Appendix A.

Where the RFC leaves a choice, this is Linux's dualpi2 (net/sched/sch_dualpi2.c, 6.18): a step on the sojourn time
instead of a ramp, weighted round robin by credit, no action of the PI law on less than two packets.
"""

from __future__ import annotations

from netctrl.laws.aqm.law import GAIN, GAIN_OR_0, QueueRecord
from netctrl.laws.l4s.pi2 import COUPLING, pi2_base
from netctrl.model.io.fields import Duration, duration, number, read_fields, whole

SEND, MARK, DROP = range(3)
"""What becomes of a packet at a queue's head."""
_PERCENT = 100.0


class DualPi2Queue(QueueRecord, frozen=True, kw_only=True, tag="dualpi2"):
    """DualPI2: packets with ECT(1) or CE in the L queue, all others in the C queue, coupled by PI2.

    The PI law acts on the age of the older of both first packets. Classic packets are marked, or dropped, with p'²,
    those in the L queue with k p', or surely after a wait above `step`. From k p' = 1 on both queues drop with p'², and
    the L queue marks the rest. A full buffer drops what comes. Source: RFC 9332, Appendix A; defaults of Linux, but
    `step_packets`, the RFC's.
    """

    target: Duration = 15e-3
    """Target of the queueing delay [s]."""
    update: Duration = 16e-3
    """From one update to the next [s]."""
    alpha: float = 0.16
    """Gain on the delay's error [1/s]."""
    beta: float = 3.2
    """Gain on the delay's change [1/s]."""
    coupling: float = 2.0
    """k: the L queue's packets are marked with k p'."""
    step: Duration = 1e-3
    """Wait in the L queue above which a packet is marked [s]."""
    step_packets: int = 1
    """Full packets that a packet has to find in the L queue for the step to apply to it."""
    protection: float = 0.1
    """Share of the link that the C queue gets at least while both have packets."""

    def __post_init__(self) -> None:
        read_fields(self, target=duration, update=duration, alpha=GAIN, beta=GAIN_OR_0, coupling=COUPLING)
        read_fields(self, step=duration, step_packets=whole(0, 1_000_000))
        read_fields(self, protection=number("a share from 0 to 1, as in 0.1", at_least=0.0, at_most=1.0))


class DualPi2State:
    """State and parameters of a DualPI2, changed in place."""

    base_probability: float
    """p'"""
    old_delay: float
    """Of the update before [s]"""
    credit: float
    """Of the C queue: it is next while this is above 0 [% byte]"""
    target: float
    """Delay [s]"""
    alpha: float
    """Gain on the delay [1/s]"""
    beta: float
    """Gain on its change [1/s]"""
    coupling: float
    """k"""
    step: float
    """[s]"""
    step_bytes: float
    """What a packet has to find in the L queue for the step to apply to it [byte]"""
    weight: float
    """Of the C queue, that of the L queue being 100 less it [%]"""
    packet: float
    """A full one [byte]"""


def dualpi2_state(queue: DualPi2Queue, packet: float) -> tuple[float, ...]:
    """First values of `DualPi2State`; `packet` is a full one [byte]."""
    weight = round(_PERCENT * queue.protection, 9)
    return (
        *(0.0, 0.0, fresh_credit(weight, packet)),
        *(queue.target, queue.alpha, queue.beta, queue.coupling),
        *(queue.step, queue.step_packets * packet, weight, packet),
    )


def fresh_credit(weight: float, packet: float) -> float:
    """Credit while both queues are empty: the L queue is first, unless the C queue has more than half the link."""
    return packet * (weight - (_PERCENT - weight))


def classic_is_next(credit: float, low_waits: bool, classic_waits: bool) -> bool:
    """Whether the C queue's first packet is next; one of the two has one."""
    return classic_waits and (not low_waits or credit > 0.0)


def spend_credit(credit: float, weight: float, classic: bool, size: float) -> float:
    """Credit after a packet of `size` bytes was sent while the other queue had one too."""
    return credit - (_PERCENT - weight) * size if classic else credit + weight * size


def update_dualpi2(state: DualPi2State, delay: float) -> None:
    """The next p', from the age of the older of both first packets [s]."""
    old = state.old_delay
    state.base_probability = pi2_base(state.base_probability, delay, old, state.target, state.alpha, state.beta)
    state.old_delay = delay


def judge_packet(state: DualPi2State, low: bool, capable: bool, late: bool, backlog: float, draw: float) -> int:
    """What becomes of the packet that was taken from a queue: SEND, MARK or DROP.

    Parameters
    ----------
    state : DualPi2State
    low : bool
        It was in the L queue.
    capable : bool
        It can be marked.
    late : bool
        The step applies to it, and it has waited longer than that.
    backlog : float
        What else waits in both queues [byte].
    draw : float
        Drawn evenly from [0, 1).
    """
    chosen = low and late
    if backlog >= 2.0 * state.packet:
        overload = state.coupling * state.base_probability >= 1.0
        squared = draw < state.base_probability * state.base_probability
        if squared and overload:
            return DROP
        coupled = draw < state.coupling * state.base_probability
        chosen = chosen or (low and coupled) or (not low and squared)
    if chosen:
        return MARK if capable else DROP
    return SEND
