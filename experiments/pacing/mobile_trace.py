"""Makes data/traces/mobile.trace, a made-up mobile link: `python experiments/pacing/mobile_trace.py`.

20 s around 6 Mbit/s: slow and fast fading as two sines, half of it from 12 to 15 s, nothing for 0.4 s at 8 s, as where
a phone changes cells. Nothing in it was measured, and no random number is drawn.
"""

import sys
from pathlib import Path

import numpy as np

from netctrl.model.link_trace import LinkTrace, link_trace_of

DURATION, MEAN = 20.0, 6e6
PLACE = Path(__file__).parents[2] / "data" / "traces" / "mobile.trace"


def rate(times: np.ndarray) -> np.ndarray:
    """[bit/s]"""
    fading = 1.0 + 0.5 * np.sin(2.0 * np.pi * times / 6.7) + 0.3 * np.sin(2.0 * np.pi * times / 1.3 + 1.0)
    shadow = np.where((times >= 12.0) & (times < 15.0), 0.5, 1.0)
    return MEAN * shadow * np.where((times >= 8.0) & (times < 8.4), 0.0, fading)


def mobile_trace() -> LinkTrace:
    return link_trace_of(rate, DURATION)


def main() -> int:
    PLACE.write_text("".join(f"{time}\n" for time in mobile_trace().times_ms), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
