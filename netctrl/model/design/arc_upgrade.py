"""Conversion of ARC certificates of netctrl 0.1, which were of the continuous loop, to today's record."""

from __future__ import annotations

from typing import Any

__all__ = ["upgraded"]

_SAFE_SHARE = 0.5
"""Safe share of the old limit on alpha, which lacked the window's delay: too high by up to 20 % from 1.5 packets on."""
_PAPER = (
    "plant",
    "loop",
    "stable",
    "alpha_over_epoch",
    "gain_margin_db",
    "phase_margin_deg",
    "delay_margin_s",
    "crossover_rad_s",
    "phase_crossover_rad_s",
    "minimum_stability",
)


def upgraded(design: dict[str, Any]) -> dict[str, Any]:
    """A Design with an old certificate, whose content is moved to `paper`; any other Design is returned unchanged.

    Nothing is invented: margins of the sampled loop that weren't computed then are null, and a gain that was called
    admissible is at most stable now. A warning tells how to certify it again.
    """
    old = design.get("certificate") if isinstance(design, dict) else None
    if not isinstance(old, dict) or design.get("method") != "arc" or "paper" in old or "sampled" not in old:
        return design
    sampled, law = old["sampled"], design.get("law")
    if not isinstance(sampled, dict) or not isinstance(law, dict):
        return design
    paper = {name: old[name] for name in _PAPER if name in old}
    paper["alpha_limits"] = sampled.get("alpha_limits")
    alpha, limit = law.get("alpha_per_packet"), sampled.get("alpha_limit")
    numbers = isinstance(alpha, int | float) and isinstance(limit, int | float)
    stable = bool(numbers and old.get("stable") is True and alpha <= _SAFE_SHARE * limit)
    point = old.get("operating_point")
    if isinstance(point, dict) and isinstance(point.get("marking_probability"), int | float):
        status = "infeasible" if point["marking_probability"] > 1.0 else "stable" if stable else "unstable"
    else:
        status = "stable" if stable else "unstable"
    return design | {
        "certificate": {
            "status": status,
            "stable": stable and status == "stable",
            "operating_point": point,
            "sampled": {name: value for name, value in sampled.items() if name != "alpha_limits"},
            "simulated": None,
            "reach": None,
            "paper": paper,
            "box": None,
            "warnings": [
                "certified by an older netctrl, whose margins were not of the implemented loop: certify it again with"
                " `netctrl.arc(..., alpha_per_packet=...)` or `python -m netctrl.design arc ... --alpha ...`",
                *(old.get("warnings") or ()),
            ],
        }
    }
