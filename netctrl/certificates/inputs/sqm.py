"""Shaped queues of OpenWrt's sqm-scripts, from /etc/config/sqm.

Each section shapes an interface's download and upload, in kbit/s, with a queue in each direction. Without a target that
of CoDel and PIE is the time of 33 cells of 53 bytes, at least 5 ms, and CoDel's interval 95 ms more; CAKE has
its `rtt`.

Sources: github.com/tohojo/sqm-scripts, src/defaults.sh, src/functions.sh (get_target, adapt_target_to_slow_link,
adapt_interval_to_slow_link), src/run-openwrt.sh and src/piece_of_cake.qos; tc-cake(8), ROUND TRIP TIME
PARAMETERS; OpenWrt, The UCI system, "File syntax".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netctrl.certificates.inputs.queue import Input, InstalledQueue, NamedLaw, whole
from netctrl.core.errors import InvalidValue, any_of
from netctrl.core.units import parse_duration

_HZ = 100
"""CONFIG_HZ of OpenWrt's kernels, target/linux/generic."""
_CELLS_BITS = 33 * 53 * 8
_CAKE_RTT = {
    "datacentre": 100e-6,
    "lan": 1e-3,
    "metro": 10e-3,
    "regional": 30e-3,
    "internet": 100e-3,
    "oceanic": 300e-3,
    "satellite": 1.0,
    "interplanetary": 3600.0,
}
_KNOWN = ("fq_codel", "codel", "cake", "pie", "fq_pie")
_DIRECTIONS = {
    "download": ("itarget", "ingress_ecn", "iqdisc_opts"),
    "upload": ("etarget", "egress_ecn", "eqdisc_opts"),
}


def read_sqm(given: Input) -> tuple[InstalledQueue, ...]:
    """Both directions of each section, with their rates.

    Parameters
    ----------
    given : Input
        UCI's configuration of sqm, as in the file or by `uci export sqm`.
    """
    sections: list[dict[str, str]] = []
    options: dict[str, str] = {}
    for line in given.content.splitlines():
        match line.strip().split(None, 2):
            case ["config", kind, *name]:
                options = {"interface": _plain(*name)}
                sections += [options] if _plain(kind) == "queue" else []
            case ["option", key, value]:
                options[_plain(key)] = _plain(value)
    return tuple(_queue(options, direction, given.hz) for options in sections for direction in _DIRECTIONS)


def _plain(text: str = "") -> str:
    """A value without quotes, and without what stands behind them."""
    return text[1:].partition(text[0])[0] if text[:1] in ("'", '"') else text.partition("#")[0].strip()


def _queue(options: dict[str, str], direction: str, hz: int | None) -> InstalledQueue:
    qdisc = "cake" if "cake" in options.get("script", "") else options.get("qdisc", "fq_codel")
    queue = InstalledQueue(kind=qdisc, device=options["interface"], parent=direction)
    try:
        if options.get("enabled") != "1":
            return replace(queue, reason="sqm doesn't run here: enabled isn't 1")
        rate = whole(direction, options.get(direction), 10**12)
        if rate == 0:
            return replace(queue, reason=f"{direction} is 0: sqm doesn't shape it, and the queue is somewhere else")
        if qdisc not in _KNOWN:
            raise InvalidValue("qdisc", qdisc, any_of(_KNOWN, qdisc))
        queue = replace(queue, capacity_bit_per_s=rate * 1e3)
        target, ecn, more = (options.get(key, "") for key in _DIRECTIONS[direction])
        if qdisc == "cake":
            return replace(queue, law=NamedLaw("cake", {"rtt_s": _rtt(more.split())}))
        law: dict[str, Any] = _times(qdisc, target, rate)
        if qdisc.endswith("pie"):
            law |= {"ecn": ecn != "NOECN", "hz": hz or _HZ}
            queue = replace(queue, notes=() if hz else (f"CONFIG_HZ is taken as {_HZ}, OpenWrt's; else give --hz",))
        return replace(queue, law=NamedLaw(qdisc, law))
    except InvalidValue as error:
        return queue.unread(error)


def _rtt(words: list[str]) -> float:
    """CAKE's rtt of its options [s]."""
    if "rtt" in words[:-1]:
        return _seconds("rtt", words[words.index("rtt") + 1])
    return next((_CAKE_RTT[word] for word in words if word in _CAKE_RTT), _CAKE_RTT["internet"])


def _times(qdisc: str, target: str, kbit_per_s: int) -> dict[str, Any]:
    """Target, and CoDel's interval, as sqm passes them to tc; what it doesn't pass is the kernel's default."""
    if target.lower() == "default" or qdisc == "fq_pie":
        return {}
    if target.lower() not in ("", "auto"):
        return {"target_s": _seconds("target", target)}
    target_s = max(1000 * _CELLS_BITS // kbit_per_s, 5000) * 1e-6
    return {"target_s": target_s} | ({} if qdisc == "pie" else {"interval_s": 0.095 + target_s})


def _seconds(name: str, text: str) -> float:
    try:
        return parse_duration(text.replace("secs", "s").replace("sec", "s"))
    except ValueError:
        raise InvalidValue(name, text, "a time with its unit, as in 5ms") from None
