"""WRED of OpenConfig's queue management profiles, in the JSON of RFC 7951, as gNMI and RESTCONF give it.

Thresholds are in bytes or in percent of the queue's buffer; the average has the weight 2^-n.

Source: OpenConfig, openconfig-qos-mem-mgmt.yang (2.2.0, 2026-04-30).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from netctrl.certificates.inputs.queue import NO_WEIGHT, Input, InstalledQueue, Length, Thresholds, whole
from netctrl.core.errors import InvalidValue, checked_flag

_LIST = "queue-management-profile"


def has_profiles(parsed: Any) -> bool:
    """Whether queue management profiles are somewhere in it."""
    return next(_profiles(parsed), None) is not None


def read_openconfig(given: Input) -> tuple[InstalledQueue, ...]:
    """Laws of all profiles.

    Parameters
    ----------
    given : Input
        With /qos/queue-management-profiles somewhere in it.
    """
    return tuple(_queue(each, number) for number, each in enumerate(_profiles(given.content), 1))


def _local(table: Any) -> dict[str, Any]:
    """A table's values by names without their module's."""
    return {name.rpartition(":")[2]: value for name, value in table.items()} if isinstance(table, dict) else {}


def _profiles(parsed: Any) -> Iterator[Any]:
    """Members of all lists of profiles, in the order of the text."""
    left = [parsed]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left.extend(reversed(node))
            continue
        for name, value in reversed(_local(node).items()):
            if name == _LIST and isinstance(value, list):
                yield from value
            elif isinstance(value, dict | list):
                left.append(value)


def _queue(given: Any, number: int) -> InstalledQueue:
    profile = _local(given)
    name = profile.get("name")
    queue = InstalledQueue(kind="wred", handle=name if isinstance(name, str) else f"profile {number}")
    try:
        for law in ("wred", "red"):
            if law in profile:
                uniform = _local(_local(profile[law]).get("uniform"))
                config = _local(uniform.get("config", uniform.get("state")))
                return replace(queue, law=_law(law, config), notes=() if "weight" in config else (NO_WEIGHT,))
    except InvalidValue as error:
        return queue.unread(error)
    return replace(queue, reason="neither wred nor red is in the profile")


def _law(law: str, config: dict[str, Any]) -> Thresholds:
    if law == "red":
        raise InvalidValue("red", config, "wred: the model's red has no probability below the maximum threshold")
    percent, unit = ("", "bytes") if {"min-threshold", "max-threshold"} & config.keys() else ("-percent", "percent")
    ends = (f"min-threshold{percent}", f"max-threshold{percent}")
    low, high = (Length(whole(end, config.get(end)), unit) for end in ends)
    most = whole("max-drop-probability-percent", config.get("max-drop-probability-percent"), 100)
    weight = whole("weight", config.get("weight", 0), 31)
    return Thresholds(
        low=low,
        high=high,
        percent=most,
        ecn=checked_flag("enable-ecn", config.get("enable-ecn", False)),
        weight_log=weight,
    )
