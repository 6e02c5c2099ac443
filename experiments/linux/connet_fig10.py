"""CONNET in the kernel, as Fig. 10(d): control is switched on while the link is loaded by 70 %."""

from __future__ import annotations

import pandas as pd
from common import Outcome
from linux.connet_fig_common import by_repeat, first_repeat, over_time
from linux.connet_study import SETTLING, SWITCHED, SWITCHED_REFERENCE, kept

SKIPPED = 4
"""Periods before the load is what it will be."""


def main(*, full: bool = False) -> Outcome:
    data = kept()
    runs = data[data.kind == "activation"]
    said = "Sources send 14 Mbit/s of 20 through open regulators; the law is switched on after 15 s."
    shown = first_repeat(data, "activation")
    figure = over_time("CONNET in the kernel: switched on at run time", shown, said, top=12.0)
    computed = {f"connet-{name}": value for name, value in values(runs).items()}
    return Outcome("connet-fig10", "linux", runs, figure, computed)


def values(runs: pd.DataFrame) -> dict[str, float]:
    """Of the claims."""
    period = runs.groupby("repeat").cumcount()
    before = by_repeat(runs[(period >= SKIPPED) & (period < SWITCHED)], ["way"])
    after = by_repeat(runs[period >= SWITCHED + SETTLING], ["way"])
    return {
        "open-delay": float(before.delay_ms.mean()),
        "switched-error": float(abs(after.delay_ms.mean() / SWITCHED_REFERENCE - 1.0)),
        "switched-price": float(after.other_mbit_s.mean() / before.other_mbit_s.mean()),
    }
