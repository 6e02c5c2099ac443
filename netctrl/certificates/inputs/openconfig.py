"""WRED of OpenConfig's queue management profiles, in the JSON of RFC 7951, as gNMI and RESTCONF give it.

Thresholds are in bytes or in percent of the queue's buffer; the average has the weight 2^-n.

Source: OpenConfig, openconfig-qos-mem-mgmt.yang (2.2.0, 2026-04-30).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from netctrl.certificates.inputs.queue import NO_WEIGHT, InstalledQueue, Length, Thresholds
from netctrl.core.errors import FileError, InvalidValue

_LIST, _PROFILES = "queue-management-profile", "queue-management-profiles"


def has_profiles(parsed: Any) -> bool:
    """Whether queue management profiles are somewhere in it."""
    return next(_profiles(parsed), None) is not None


def read_openconfig(parsed: Any, source: str) -> tuple[InstalledQueue, ...]:
    """Laws of all profiles.

    Parameters
    ----------
    parsed : dict or list
        With /qos/queue-management-profiles somewhere in it.
    source : str
        Name of the input in messages.

    Raises
    ------
    FileError
        No profile.
    """
    queues = tuple(_queue(each, number) for number, each in enumerate(_profiles(parsed), 1))
    if not queues:
        raise FileError(source, f"no {_LIST} in it")
    return queues


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
    ends, unit = ("min-threshold", "max-threshold"), "bytes"
    if not any(end in config for end in ends):
        ends, unit = tuple(f"{end}-percent" for end in ends), "percent"
    low, high = (Length(_number(config, end), unit) for end in ends)
    for leaf in ("enable-ecn", "drop"):
        if not isinstance(config.get(leaf, False), bool):
            raise InvalidValue(leaf, config[leaf], "true or false")
    return Thresholds(
        low=low,
        high=high,
        percent=_number(config, "max-drop-probability-percent"),
        ecn=config.get("enable-ecn", False),
        weight_log=int(_number({"weight": 0} | config, "weight")),
    )


def _number(config: dict[str, Any], leaf: str) -> float:
    """A whole number, which is text where the model has 64 bits."""
    value = config.get(leaf)
    text = value if isinstance(value, str) else str(value) if type(value) is int else ""
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return float(text)
    raise InvalidValue(leaf, value, "a whole number")
