"""Output of `tc qdisc show` in words, as the list that `tc -j qdisc show` prints.

In words times have three digits and sizes are rounded to 16 bytes or less; pie's interval is one of the kernel's ticks,
so it is known exactly.

Sources: iproute2 7.1, tc/tc_qdisc.c, tc/q_dualpi2.c, tc/q_red.c, lib/utils.c (sprint_time), lib/json_print_math.c
(sprint_size), lib/utils_math.c (units of rates).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from netctrl.core.units import BITS_PER_BYTE, parse_rate
from netctrl.laws.targets.dualpi2 import DUALPI2_MAX
from netctrl.laws.targets.jiffies import KNOWN_HZ, jiffies_of_us, us_of_jiffies

_VALUE = re.compile(r"(-?[0-9.]{1,20})(e[-+]?[0-9]{1,3})?([A-Za-z%]{0,8})")
_UNITS = {"us": 1, "ms": 1000, "s": 1_000_000, "b": 1, "B": 1, "Kb": 2**10, "Mb": 2**20, "Gb": 2**30, "p": 1, "%": 1}
_DUALPI2: dict[str, tuple[str, Any]] = {
    "drop_on_overload": ("drop-overload", "drop"),
    "overflow": ("drop-overload", "overflow"),
    "drop_enqueue": ("drop-early", "drop-enqueue"),
    "drop_dequeue": ("drop-early", "drop-dequeue"),
    "l4s_ect": ("ecn-mask", "l4s-ect"),
    "any_ect": ("ecn-mask", "any-ect"),
    "split_gso": ("split-gso", None),
}
"""Words of dualpi2 -> key and value in JSON."""
_KEYS = {
    "step_thresh": "step-thresh-us",
    "step_thresh_pkts": "step-thresh-pkts",
    "memlimit": "memory-limit",
    "min_qlen_step": "min-qlen-step",
    "coupling_factor": "coupling",
    "classic_protection": "c-protection",
}


def tc_entries(text: str, unknown: str) -> list[Any]:
    """Disciplines as in JSON; lines of statistics are left out, but for the probability.

    Parameters
    ----------
    text : str
        The output.
    unknown : str
        Key for options of a discipline that this tc doesn't know.

    Examples
    --------
    >>> tc_entries("qdisc pie 2: dev eth0 root refcnt 2 limit 1000p target 15ms alpha 2 ecn", "?")[0]["options"]
    {'limit': 1000, 'target': 15000, 'alpha': 2, 'ecn': True}
    """
    found: list[Any] = []
    for line in text.splitlines():
        words = line.split()
        while words[:1] in (["deleted"], ["replaced"], ["added"]):
            del words[0]
        if words[:1] == ["qdisc"]:
            found.append(_entry(words[1:], unknown))
        elif words[:1] in (["prob"], ["prob:"]) and found and len(words) > 1:
            with suppress(ValueError):
                found[-1]["prob"] = float(words[1])
    return found


def _entry(words: list[str], unknown: str) -> dict[str, Any]:
    options = dict(_options(words[2:]))
    entry: dict[str, Any] = dict(zip(("kind", "handle"), words, strict=False))
    entry |= {key: options[key] for key in ("dev", "root", "parent") if key in options}
    for key in ("dev", "root", "parent", "refcnt", "offloaded", "ingress_block", "egress_block"):
        options.pop(key, None)
    if "[Unknown" in options:
        options = {unknown: True}
    elif entry.get("kind") == "dualpi2":
        options = dict(_as_dualpi2(options))
    elif "tupdate" in options:
        options["tupdate"] = _ticks(options["tupdate"])
    return entry | {"options": options}


def _options(words: list[str]) -> Iterator[tuple[str, Any]]:
    """Names with the values that follow them; a name without one is a flag."""
    name = ""
    for word in words:
        value = word if name in ("dev", "parent") else _value(word)
        if name == "bandwidth" and value is None:
            value = word  # unlimited
        if value is not None and name:
            yield f"{name}_pkts" if name == "step_thresh" and word.endswith("p") else name, value
            name = ""
            continue
        if name:
            yield name, True
        name = word
    if name:
        yield name, True


def _value(word: str) -> float | str | None:
    """Time in us, size in bytes, rate in bytes a second, or a number; None for a word."""
    match = _VALUE.fullmatch(word)
    if match is None:
        return word if word.startswith("0x") else None
    with suppress(ValueError):
        if match[3] and match[3] not in _UNITS:
            return round(parse_rate(word) / BITS_PER_BYTE)
        value = float(match[1] + (match[2] or "")) * _UNITS.get(match[3], 1)
        return round(value) if abs(value) < 2.0**53 and (match[3] or "." not in word) else value
    return None


def _ticks(shown: Any) -> Any:
    """The whole number of ticks, in us, that is shown so with three digits."""
    if type(shown) is int and 0 < shown < 4_000_000:
        near = [us_of_jiffies(jiffies_of_us(shown, hz) - less, hz) for hz in KNOWN_HZ for less in (0, 1)]
        return shown if shown in near else next((us for us in near if f"{us:.3g}" == f"{shown:.3g}"), shown)
    return shown


def _as_dualpi2(options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """dualpi2's options by their names in JSON, with gains in six digits."""
    for name, value in options.items():
        if name in _DUALPI2 and value is True:
            yield _DUALPI2[name]
        elif name in ("alpha", "beta") and type(value) in (int, float) and 0 <= value < DUALPI2_MAX:
            yield name, float(f"{round(value * 256) / 256:g}")
        elif name != "no_split_gso":
            yield _KEYS.get(name, name), value
