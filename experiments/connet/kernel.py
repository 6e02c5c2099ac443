"""What the certificates of random access links promise, in the Linux kernel in virtual time: `curve.py`'s judgement.

`python experiments/connet/kernel.py LINKS [SEED [FIRST]]`, where `netctrl kernel build` was run. Links have 10 to 200
Mbit/s and 1 to 5 hops, and periods of some 2,500 packets. Each link's trace is recorded in the kernel too: its random
levels are changes of the sources' rates. Some 4 minutes of one core for a link.
"""

import sys

import numpy as np
from curve import MBIT, judged_in, link, main

import netctrl
from netctrl.core.names import EngineName
from netctrl.model.signals import SignalTrace
from netctrl.scenario.scenario import Scenario

GREATEST, PERIOD_MBIT = 200.0, 20.0


def recorded(engine: EngineName, scenario: Scenario, levels: np.ndarray) -> SignalTrace:
    """Trace of a link at these levels of all sources together [Mbit/s], without a law."""
    sources = [group for group in scenario.flows if group.id != scenario.control.measures]
    share = MBIT / sum(group.count for group in sources)
    changes = [
        netctrl.Change(at=place * scenario.interval, flow=group.id, rate=share * level)
        for place, level in enumerate(levels.tolist())
        for group in sources
    ]
    found = netctrl.simulate(scenario.replace(control=None, changes=changes), engine)
    delay = 1e3 * found.series["one_way", scenario.control.measures]
    return SignalTrace(
        interval_s=scenario.interval, input_values=levels, output_values=delay, inputs=("R",), outputs=("delay",)
    )


def judged(seed: int, number: int, engine: EngineName = "kernel") -> dict[str, object]:
    """One of the links, with what became of its references."""
    random = np.random.default_rng([seed, number])
    scenario, levels = link(random, GREATEST, PERIOD_MBIT)
    return {"link": number} | judged_in(engine, scenario, recorded(engine, scenario, levels), random)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]), judge=judged)
