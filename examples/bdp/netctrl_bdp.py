"""the bandwidth-delay product of a path, and whether a buffer holds it"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from netctrl.cli.app import answer, new_app, run
from netctrl.cli.options import RATE, SIZE, TIME
from netctrl.core.units import BITS_PER_BYTE, DURATION_TAKES, RATE_TAKES

app = new_app("netctrl bdp", "Computes the bandwidth-delay product of a path.")


@app.default
def bdp(
    *,
    rate_bit_per_s: Annotated[float, RATE(f"of the bottleneck: {RATE_TAKES}")],
    rtt_s: Annotated[float, TIME(f"round-trip time without queues: {DURATION_TAKES}", default="40ms")] = 0.04,
    buffer_bytes: Annotated[float | None, SIZE("a buffer that should hold it")] = None,
) -> int:
    """Exit status 3 if the buffer is smaller.

    Examples
    --------
    netctrl bdp --rate 20Mbit --rtt 50ms
    netctrl bdp --rate 20Mbit --rtt 50ms --buffer 100kB
    """
    product = rate_bit_per_s * rtt_s / BITS_PER_BYTE
    holds = buffer_bytes is None or buffer_bytes >= product
    return answer(
        f"{product:.0f} bytes\n", holds, f"the buffer is {product - (buffer_bytes or 0.0):.0f} bytes too small"
    )


def main(argv: Sequence[str] | None = None) -> int:
    return run(app, argv)
