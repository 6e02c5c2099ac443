"""Queues as tc prints them and WRED profiles as SONiC's configuration has them."""

from __future__ import annotations

import json

PIE = {"limit": 1000, "target": 15_000, "tupdate": 16_000, "alpha": 2, "beta": 20}
DUALPI2 = {
    "limit": 10000,
    "memory-limit": 30280000,
    "target": 15000,
    "tupdate": 16000,
    "alpha": 0.15625,
    "beta": 3.19531,
    "step-thresh-us": 1000,
    "min-qlen-step": 0,
    "coupling": 2,
    "drop-overload": "drop",
    "drop-early": "drop-dequeue",
    "c-protection": 10,
    "ecn-mask": "l4s-ect",
    "split-gso": None,
}
RED = {"limit": 400_000, "min": 30_000, "max": 90_000, "ecn": True, "ewma": 5, "probability": 0.02, "Scell_log": 15}


def entry(kind: str, options: dict, number: int = 2, **more) -> dict:
    return {"kind": kind, "handle": f"{number}:", "dev": "eth0", "root": True, "options": options, **more}


def wred_profile(
    low: int = 1048576,
    high: int = 2097152,
    percent: int = 5,
    ecn: str = "ecn_all",
    colours: tuple[str, ...] = ("green",),
) -> dict[str, str]:
    """By default AZURE_LOSSLESS, which SONiC's template has for all platforms without one of their own."""
    own = {"min_threshold": str(low), "max_threshold": str(high), "drop_probability": str(percent)}
    enabled = {f"wred_{colour}_enable": "true" for colour in colours}
    return {"ecn": ecn, **enabled, **{f"{colour}_{name}": own[name] for colour in colours for name in own}}


def sonic(**profiles: dict) -> str:
    return json.dumps({"WRED_PROFILE": profiles})
