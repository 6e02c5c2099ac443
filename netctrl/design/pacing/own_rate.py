"""Certificate of pacing to a queue of the own rate: shares and queue in closed form, stability for any round trips.

N flows of capacity C have the rate x = C/N each, whatever their round trips, and wait q = α(x)/x. Let ρ = ℓ₀/ℓ be the
part of a round trip that isn't queue, e = x α'/α, a = γ (ρ + (1 − ρ) e) and b = γ − a. A window's relative deviation w
and a queueing delay's y, as a share of ℓ, obey, once a round trip, with RTTs of packets sent in the one before,

    w⁺ = (1 − b) w − a y⁻,    y = Σ θᵢ wᵢ ℓᵢ/ℓ,    Σ θᵢ = 1

so the loop is Σ θᵢ G(exp(jωℓᵢ)), G(z) = a / (z (z − 1 + b)). On the unit circle Re G ≥ −3a/2, because with c = cos Ω
and r = 1 − b ≤ 1 the form 2c² − 4rc + 1/2 + 3r²/2 has the discriminant 4r² − 4 ≤ 0. A mean of points right of
−3γ/2 is right of it, so that for γ < 2/3 no mixture of round trips, shares and numbers of flows encircles −1.
"""

from __future__ import annotations

from bisect import bisect_right
from math import acos, inf, pi, sqrt

from netctrl.core.errors import Status
from netctrl.core.units import BITS_PER_BYTE, packets_per_second
from netctrl.laws.pacing.own_rate import MAX_BDPS, MAX_PACKETS
from netctrl.model.design.pacing import OwnRateEquilibrium, PacingCertificate, PacingInputs
from netctrl.model.law import OwnRatePacer

_ANY_RTTS = 1.5  # −Re G / γ at most
_FEW = 2.0  # packets of a window, below which timers find losses


def queue_packets(law: OwnRatePacer, capacity: float, flows: int) -> float:
    """N α(C/N) [packet] of a capacity C [packet/s]."""
    return law.queue_packets * flows + law.queue_packets_per_root_rate * sqrt(capacity * flows)


def delay_margin(a: float, b: float) -> float:
    """Round trips by which the answer of flows with one round trip may come later; inf: any.

    |G| = 1 at cos Ω = (1 + r² − a²) / 2r, r = 1 − b.
    """
    r = 1.0 - b
    if r <= 0.0 or a <= b:
        return inf
    cos = (1.0 + r * r - a * a) / (2.0 * r)
    if cos <= -1.0:
        return 0.0
    angle = acos(cos)
    # arg G = −Ω − arg(exp(jΩ) − r), both between 0 and π.
    lag = angle + acos((cos - r) / a)
    return (pi - lag) / angle


def equilibrium(law: OwnRatePacer, requested: PacingInputs, buffer: float) -> OwnRateEquilibrium:
    """Where flows of one round trip rest, and how they come there."""
    packet = law.packet_size_bytes
    capacity, flows, base = packets_per_second(requested.bottleneck_bit_per_s, packet), requested.flows, requested.rtt_s
    x, waiting = capacity / flows, queue_packets(law, capacity, flows)
    queue = waiting / capacity
    rho = base / (base + queue)
    elastic = 0.5 * law.queue_packets_per_root_rate * sqrt(x) / (waiting / flows)
    b = law.gain * (1.0 - rho) * (1.0 - elastic)
    later = delay_margin(law.gain - b, b)
    most = base + (MAX_BDPS * waiting + MAX_PACKETS * flows) / capacity
    return OwnRateEquilibrium(
        rate_bit_per_s=requested.bottleneck_bit_per_s / flows,
        window_packets=x * (base + queue),
        queue_s=queue,
        worst_queue_s=min(most, BITS_PER_BYTE * buffer / requested.bottleneck_bit_per_s),
        pole=1.0 - b,
        time_constant_s=(base + queue) / b,
        gain_margin=1.0 / (_ANY_RTTS * law.gain),
        delay_margin_rtts=None if later == inf else later,
    )


def own_rate_proof(requested: PacingInputs, law: OwnRatePacer, buffer: float) -> PacingCertificate:
    """Certificate for flows of one round trip; their rates and queue are those of unlike round trips too."""
    found = equilibrium(law, requested, buffer)
    packet = law.packet_size_bytes
    capacity = packets_per_second(requested.bottleneck_bit_per_s, packet)
    least = packet * queue_packets(law, capacity, requested.flows)
    warnings = []
    if least > buffer:
        warnings.append(
            f"a buffer of {buffer:.6g} bytes is less than the queue of {least:.6g} bytes that {requested.flows} flows "
            f"aim at: losses of up to {100.0 * law.tolerated_loss:g} % limit the windows, and rates become equal by "
            "cuts; take a longer --buffer, or a smaller --N"
        )
    if found.window_packets < _FEW:
        warnings.append(
            f"windows of {found.window_packets:.3g} packets: losses are found by timers, which nothing certifies;"
            " take a smaller --N"
        )
    settled = Status.STABLE if warnings else Status.ADMISSIBLE
    return PacingCertificate(
        status=settled if found.gain_margin > 1.0 else Status.UNSTABLE,
        sampling_s=requested.rtt_s + found.queue_s,
        freeze_below_s=None,
        step_limit=law.gain * found.gain_margin,
        sgd_limits=(),
        least_buffer_bytes=least,
        most_flows=bisect_right(
            range(1, 1_000_001), buffer, key=lambda flows: packet * queue_packets(law, capacity, flows)
        ),
        equilibrium=found,
        warnings=tuple(warnings),
    )
