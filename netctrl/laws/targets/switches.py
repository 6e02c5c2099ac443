"""WRED profiles of switches as JSON: SONiC's CONFIG_DB and OpenConfig's queue management profiles.

Names, types and ranges are those of the public models: SONiC, sonic-wred-profile.yang (revision 2026-06-23), whose
CONFIG_DB has all values as text; OpenConfig, openconfig-qos-mem-mgmt.yang (2.2.0, 2026-04-30), in the JSON of RFC 7951,
where numbers of 64 bits are text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.step import step_law
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.law import QueueLaw

_COLOURS = ("green", "yellow", "red")
_SONIC_NAME = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9_]{0,31}")
_NAME_TAKES = "a name of 1 to 32 letters, digits, - and _ that begins with a letter or digit"
_TEXT = re.compile(r"[\x20-\x7e]{1,64}")


def sonic_profiles(laws: Mapping[str, QueueLaw]) -> str:
    """WRED_PROFILE table of SONiC's CONFIG_DB with profiles that are the same for all three colours.

    Parameters
    ----------
    laws : mapping of str to QueueLaw
        Name of each profile -> of "wred", or of "dctcp" with a threshold in bytes: equal thresholds, from which on
        every packet is marked.

    Raises
    ------
    InvalidValue
        A law that a switch doesn't run, or a name that SONiC doesn't take.

    Examples
    --------
    >>> from netctrl.model.law import QueueLaw
    >>> given = {"min_bytes": 100_000, "max_bytes": 900_000, "max_percent": 10, "ecn": True}
    >>> law = QueueLaw(name="wred", implementation="WRED of a switch", parameters=given, gains={})
    >>> '"green_max_threshold": "900000"' in sonic_profiles({"AZURE_LOSSLESS": law})
    True
    """
    return _text({"WRED_PROFILE": {name: _sonic(_wred(law), name) for name, law in laws.items()}})


def _sonic(wred: WredLaw, name: str) -> dict[str, str]:
    if wred.weight_log:
        raise InvalidValue("weight_log", wred.weight_log, "0: SONiC's WRED reads the present queue, not an average")
    if _SONIC_NAME.fullmatch(name) is None:
        raise InvalidValue("name", name, _NAME_TAKES)
    profile = {"ecn": "ecn_all" if wred.ecn else "ecn_none"}
    for colour in _COLOURS:
        profile |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_min_threshold": str(wred.min_bytes),
            f"{colour}_max_threshold": str(wred.max_bytes),
            f"{colour}_drop_probability": str(wred.max_percent),
        }
    return profile


def openconfig_profiles(laws: Mapping[str, QueueLaw]) -> str:
    """Queue management profiles of OpenConfig with uniform WRED: /qos/queue-management-profiles.

    Packets without ECN are dropped where others are marked; a weight of 2^0 in the average is the present queue.

    Parameters
    ----------
    laws : mapping of str to QueueLaw
        Name of each profile -> of "wred", or of "dctcp" with a threshold in bytes.

    Raises
    ------
    InvalidValue
        A law that a switch doesn't run, or a name that isn't printable ASCII of at most 64 characters.
    """
    profiles = [_openconfig(_wred(law), name) for name, law in laws.items()]
    return _text({"openconfig-qos:qos": {"queue-management-profiles": {"queue-management-profile": profiles}}})


def _openconfig(wred: WredLaw, name: str) -> dict[str, Any]:
    if _TEXT.fullmatch(name) is None:
        raise InvalidValue("name", name, "a name of 1 to 64 printable characters of ASCII")
    config = {
        "min-threshold": str(wred.min_bytes),
        "max-threshold": str(wred.max_bytes),
        "enable-ecn": wred.ecn,
        "drop": True,
        "weight": wred.weight_log,
        "max-drop-probability-percent": wred.max_percent,
    }
    return {"name": name, "config": {"name": name}, "wred": {"uniform": {"config": config}}}


def _wred(law: QueueLaw) -> WredLaw:
    if law.name == "dctcp":
        least = step_law(law.parameters, "bytes").marked_from
        return WredLaw(min_bytes=least, max_bytes=least, max_percent=100, ecn=True)
    if law.name != "wred":
        takes = "wred or a threshold in bytes, as netctrl design wred and ecn make them"
        if law.name == "red":
            takes += ": Linux spaces RED's marks, which doubles their rate, and a switch doesn't"
        raise InvalidValue("law", law.name, takes)
    given: dict[str, Any] = law.parameters
    wred = WredLaw(**given)
    if wred.max_percent % 1:
        raise InvalidValue("max_percent", wred.max_percent, "a whole number of percent")
    return wred


def _text(content: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
