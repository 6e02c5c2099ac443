"""Random access links, packet by packet: a curve from each link's own trace, and what its certificate promises.

`python experiments/connet/curve.py LINKS [SEED]` draws links of 10 Mbit/s to 1 Gbit/s and 1 to 5 hops. Of each it
identifies the delay's curve from 600 periods of random levels, designs a law, and asks for three references within the
range that the certificate names and for two outside. Inside, a reference is held if the mean delay is within 5 % of it
and at most 1 % of the periods are at a limit; outside it is to be refused. Some 30 s of one core for a link.
"""

import sys
from collections.abc import Callable

import msgspec
import numpy as np
import pandas as pd

import netctrl
from netctrl.core.errors import NetctrlError, NoAdmissibleDesign
from netctrl.core.names import EngineName
from netctrl.ident.curve import identify_curve
from netctrl.ident.excite import random_levels
from netctrl.model.signals import SignalTrace
from netctrl.scenario.builders import access_link
from netctrl.scenario.network.track import Track
from netctrl.scenario.scenario import Scenario
from netctrl.sim.packet.run import simulate_rates

MBIT = 1e6
SAMPLES, HOLD, COUNTED = 600, 3, 500
INSIDE, SETTLED = 3, 8.0
OUTSIDE = (0.95, 1.1)
"""Of the least and of the greatest delay that the curve has."""


def link(random: np.random.Generator, greatest: float = 1000.0, mbit: float = 100.0) -> tuple[Scenario, np.ndarray]:
    """A link, and levels of its regulated traffic [Mbit/s]; a period is the time of some 12,500 packets, or `mbit`."""
    capacity = float(10.0 ** random.uniform(1.0, np.log10(greatest)))
    interval = float(np.clip(mbit / capacity, 0.1, 10.0).round(1))
    hops, seed = int(random.integers(1, 6)), int(random.integers(2**31))
    shape = {"hops": hops, "capacity": capacity * MBIT, "seed": seed, "interval": interval, "control": Track()}
    levels = random_levels(SAMPLES, (0.1 * capacity, 0.9 * capacity), random, hold=HOLD)[:, 0]
    return access_link(duration=SAMPLES * interval, **shape), levels


def recorded(scenario: Scenario, levels: np.ndarray) -> SignalTrace:
    """Trace of a link at these levels [Mbit/s]."""
    return netctrl.access_link_signals(simulate_rates(scenario, levels * MBIT), outputs=("delay",))


def judged(seed: int, number: int) -> dict[str, object]:
    """One of the links, with what became of its references."""
    random = np.random.default_rng([seed, number])
    scenario, levels = link(random)
    return {"link": number} | judged_in("packet", scenario, recorded(scenario, levels), random)


def judged_in(
    engine: EngineName, scenario: Scenario, trace: SignalTrace, random: np.random.Generator
) -> dict[str, object]:
    """A link, with what became of its references in an engine."""
    capacity = scenario.links[0].capacity / MBIT
    row: dict[str, object] = {"Mbit/s": capacity, "hops": len(scenario.links)}
    try:
        model = identify_curve(trace)
        gain = float(model.state_space.steady_gain()[0, 0])
        row |= {"shape": model.curve.shape, "sign": np.sign(gain)}
        design = netctrl.connet(model, limits=[(0.0, capacity)])
    except NetctrlError as error:
        return row | {"refused": str(error)}
    low, high = design.certificate.slopes.held.references
    ends = model.output_offset[0] + gain * (model.curve.inputs[[0, -1]] - model.input_offset[0])
    slopes = model.curve.slopes
    row |= {"slopes": slopes.max() / slopes.min(), "least": low, "greatest": high}
    kept = 0
    for reference in (low * OUTSIDE[0], high * OUTSIDE[1], ends[1] * OUTSIDE[1]):
        try:
            netctrl.connet(
                model, limits=[(0.0, capacity)], input_weight=design.inputs.input_weight, references=[[reference]]
            )
            kept += 1
        except NoAdmissibleDesign:
            pass
    row |= {"outside taken": kept}
    for place, share in enumerate(random.uniform(0.0, 1.0, INSIDE)):
        reference = low + share * (high - low)
        settling = int(np.clip(SETTLED / -np.log(design.certificate.spectral_radius), 50, 1500))
        asked = scenario.replace(
            duration=(settling + COUNTED) * design.law.interval_s,
            seed=scenario.seed + 1 + place,
            control=msgspec.structs.replace(scenario.control, reference=((reference,),)),
        )
        signals = netctrl.simulate(asked, engine, design=design).tables["signals"]
        error = float(signals["measured delay"][settling:].mean() / reference - 1.0)
        limit = float(signals["at limit"][settling:].mean())
        row |= {f"asked {place}": reference, f"error {place}": error, f"at limit {place}": limit}
    return row


def main(
    links: int, seed: int = 1, first: int = 0, judge: Callable[[int, int], dict[str, object]] = judged
) -> pd.DataFrame:
    """Judge links; prints each, and the sums."""
    rows = []
    for number in range(first, first + links):
        row = judge(seed, number)
        rows.append(row)
        shown = (
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in rows[-1].items()
        )
        print(*shown, flush=True)
    frame = pd.DataFrame(rows)
    errors, limits = (frame.filter(like=f"{what} ").filter(regex=r"\d$") for what in ("error", "at limit"))
    asked = errors.notna()
    held = (errors.abs() <= 0.05) & (limits.to_numpy() <= 0.01)
    refused = int(frame["refused"].notna().sum()) if "refused" in frame else 0
    print(
        f"{links} links: {int((frame['sign'] < 0).sum())} wrong signs, {refused} refused; {int(held.sum().sum())} of"
        f" {int(asked.sum().sum())} references inside held; {int(frame['outside taken'].sum())} outside taken"
    )
    return frame


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
