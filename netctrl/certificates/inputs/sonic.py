"""WRED profiles of SONiC switches, from CONFIG_DB's JSON or a patch of it.

Sources: SONiC, sonic-wred-profile.yang (revisions 2021-04-01 and 2026-06-23, which has thresholds of ECN's own) and
orchagent/qosorch.cpp.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netctrl.certificates.inputs.queue import Input, InstalledQueue, whole
from netctrl.core.errors import FileError, InvalidValue, any_of, did_you_mean
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.io.validation_errors import shown

_COLOURS = ("green", "yellow", "red")
_ECN = {
    "ecn_none": (),
    "ecn_green": ("green",),
    "ecn_yellow": ("yellow",),
    "ecn_red": ("red",),
    "ecn_green_yellow": ("green", "yellow"),
    "ecn_green_red": ("green", "red"),
    "ecn_yellow_red": ("yellow", "red"),
    "ecn_all": _COLOURS,
}
_FLAGS = {"true": True, "false": False}
_FORMS = (
    "wred_{}_enable",
    "{}_min_threshold",
    "{}_max_threshold",
    "{}_drop_probability",
    "ecn_{}_min_threshold",
    "ecn_{}_max_threshold",
    "ecn_{}_mark_probability",
)
_KEYS = ("ecn", *(form.format(colour) for form in _FORMS for colour in _COLOURS))
_SPELLINGS = {
    f"{colour}_ect_{what}": f"ecn_{colour}_{what}"
    for colour in _COLOURS
    for what in ("min_threshold", "max_threshold", "mark_probability")
} | {f"{colour}_ect_drop_probability": f"ecn_{colour}_mark_probability" for colour in _COLOURS}
"""Other names of thresholds of ECN's own, as some switches write them."""


def read_sonic(given: Input) -> tuple[InstalledQueue, ...]:
    """Laws of the WRED profiles of a SONiC switch: one queue for each profile and colour with WRED.

    Where a colour has thresholds of ECN's own, these are the law, and packets without ECN are left out. A colour that
    can't be read doesn't hide the others: it is an unreadable queue, whose `reason` names the key.

    Parameters
    ----------
    given : Input
        CONFIG_DB, of which tables beside WRED_PROFILE aren't looked at, or a patch of it (RFC 6902).

    Raises
    ------
    FileError
        No profile.
    """
    parsed = given.content
    patch = isinstance(parsed, list)
    profiles = _patched(parsed) if patch else parsed.get("WRED_PROFILE")
    if not isinstance(profiles, dict) or not profiles:
        raise FileError(given.source, f"WRED_PROFILE: got {shown(profiles)}, takes a table of profiles by their names")
    return tuple(queue for name, profile in profiles.items() for queue in _queues(name, profile, patch))


def _patched(patch: list[Any]) -> dict[str, Any]:
    """Profiles with what a patch adds or replaces; with several ASICs paths begin with /asic0 or the like."""
    profiles: dict[str, Any] = {}
    for each in patch:
        path = each.get("path") if isinstance(each, dict) else None
        keys = [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")] if isinstance(path, str) else []
        if "WRED_PROFILE" not in keys or each.get("op") not in ("add", "replace"):
            continue
        match keys[keys.index("WRED_PROFILE") + 1 :], each.get("value"):
            case [], dict() as value:
                profiles |= value
            case [name], value:
                profiles[name] = value
            case [name, key], value if isinstance(profiles.setdefault(name, {}), dict):
                profiles[name][key] = value
    return profiles


def _queues(name: str, given: Any, patch: bool) -> list[InstalledQueue]:
    all_colours = InstalledQueue(kind="wred", handle=name)
    try:
        profile = _profile(given)
        if patch and "ecn" not in profile:
            raise InvalidValue(
                "ecn", None, "a setting, which the patch doesn't change: certify CONFIG_DB after the patch"
            )
        marked = _word(profile, "ecn", _ECN, "ecn_none")
    except InvalidValue as error:
        return [all_colours.unread(error)]
    found = []
    for colour in _COLOURS:
        queue, keys = replace(all_colours, parent=colour), [key for key in profile if colour in key.split("_")]
        try:
            _check_keys(keys)
            if _word(profile, f"wred_{colour}_enable", _FLAGS, "true" if patch and keys else "false"):
                found.append(replace(queue, law=_law(profile, colour, colour in marked)))
        except InvalidValue as error:
            found.append(queue.unread(error))
    return found or [replace(all_colours, reason="WRED is off for all colours")]


def _profile(given: Any) -> dict[str, Any]:
    """A profile's keys in one spelling, with values without blanks around them; InvalidValue for one of no colour."""
    if not isinstance(given, dict):
        raise InvalidValue("profile", given, "a table of keys")
    found = {}
    for key, value in given.items():
        spelled = _SPELLINGS.get(key.strip(), key.strip())
        if spelled in found:
            raise InvalidValue("key", key, f"{spelled} once")
        plain = value.strip() if isinstance(value, str) else value
        if plain != "":
            found[spelled] = plain
    _check_keys([key for key in found if not set(key.split("_")) & set(_COLOURS)])
    return found


def _check_keys(keys: list[str]) -> None:
    for key in keys:
        if key not in _KEYS:
            raise InvalidValue("key", key, f"a key of a WRED profile{did_you_mean(key, _KEYS)}")


def _law(profile: dict[str, Any], colour: str, ecn: bool) -> WredLaw:
    own = any(f"ecn_{colour}_{what}" in profile for what in ("min_threshold", "max_threshold", "mark_probability"))
    if own and not ecn:
        raise InvalidValue("ecn", profile.get("ecn"), f"ECN for {colour}, which has thresholds of ECN's own")
    prefix, last = (f"ecn_{colour}", "mark") if own else (colour, "drop")
    low, high = (whole(f"{prefix}_{end}_threshold", profile.get(f"{prefix}_{end}_threshold")) for end in ("min", "max"))
    if high < low:
        raise InvalidValue(f"{prefix}_max_threshold", high, f"at least {prefix}_min_threshold, {low}")
    percent = whole(f"{prefix}_{last}_probability", profile.get(f"{prefix}_{last}_probability", 100), 100)
    return WredLaw(min_bytes=low, max_bytes=high, max_percent=percent, ecn=ecn)


def _word(profile: dict[str, Any], key: str, known: dict[str, Any], default: str) -> Any:
    value = profile.get(key, default)
    if not isinstance(value, str) or value not in known:
        raise InvalidValue(key, value, any_of(known, value))
    return known[value]
