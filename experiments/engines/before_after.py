"""A queue with a router's default thresholds, and with those of a design, packet by packet, in ms.

`PYTHONPATH=experiments python -m engines.before_after --docs` draws docs/assets/before-after.png; without `--docs` it
prints the figures.
"""

import sys

import numpy as np
from common import ASSETS

import netctrl
from netctrl.certificates.record import QueueCertificate
from netctrl.certificates.shipped import SHIPPED
from netctrl.checks.designs import queue_design
from netctrl.checks.engines import check_scenario
from netctrl.checks.point import point_of
from netctrl.plotting.style import ACCENT, SECOND, canvas, finish

WHERE = {"flows": 30.0, "rtt_s": 0.030, "capacity_bit_per_s": 50e6}
WARM_S, END_S, SHOWN_S, SEED = 20.0, 80.0, 8.0, 21


def run(certificate: QueueCertificate) -> tuple[np.ndarray, np.ndarray, float]:
    """Times after the start [s], delays of the queue [ms] and the share of the link that is used."""
    scenario = check_scenario(point_of(certificate), "packet", SEED, (WARM_S, END_S))
    made = netctrl.simulate(scenario, "packet")
    late = made.time_s > WARM_S
    delay = 8e3 * made.series["backlog"][0][late] / WHERE["capacity_bit_per_s"]
    return made.time_s[late] - WARM_S, delay, made["utilization", scenario.links[0].id]


def main(argv: list[str]) -> int:
    default = SHIPPED["ios-wred"]
    design = queue_design("red", parameters={"min_bytes": 30_000}, utilization=0.99, **WHERE)
    panels = (
        ("Before: Cisco IOS random-detect", default.parameters),
        ("After: netctrl design red", design.law.parameters),
    )
    figure = canvas(5.2, 4.2)
    for axes, (title, parameters), colour in zip(
        figure.subplots(2, 1, sharex=True, sharey=True), panels, (SECOND, ACCENT), strict=True
    ):
        time, delay, used = run(netctrl.certify("red", parameters=parameters, **WHERE))
        print(
            f"{title}: {delay.mean():.1f} ± {delay.std():.1f} ms, 99 % {np.quantile(delay, 0.99):.1f}, used {used:.3f}"
        )
        axes.plot(time[time < SHOWN_S], delay[time < SHOWN_S], color=colour, linewidth=1.0)
        finish(axes, y="queue [ms]", title=f"{title}: {100.0 * used:.0f} % used", size=12)
    finish(axes, x="time [s]")
    if "--docs" in argv:
        figure.savefig(ASSETS / "before-after.png", dpi=150)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
