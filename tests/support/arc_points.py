"""Random operating points of ARC."""

from __future__ import annotations

from hypothesis import strategies as st

from netctrl.model.design.arc import ArcSetting

POINT = {
    "window": st.floats(1.5, 200.0),
    "epochs": st.floats(0.05, 5.0),
    "standing": st.booleans(),
    "gamma": st.floats(0.3, 0.99),
}


def loop(window: float, epochs: float, standing: bool, gamma: float) -> tuple[ArcSetting, float, float]:
    """A setting, flows and round-trip time with this window [packet] and this epoch in round trips."""
    capacity, rtt = 1250.0, 0.5
    setting = ArcSetting(
        capacity_packet_per_s=capacity,
        epoch_s=epochs * rtt,
        utilization=1.0 if standing else gamma,
        target_queue_packets=50.0 if standing else 0.0,
    )
    return setting, rtt * (capacity if standing else gamma * capacity) / window, rtt
