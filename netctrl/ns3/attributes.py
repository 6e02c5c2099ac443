"""PIE in the real numbers of RFC 8033 as attributes of ns-3's own queue disc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netctrl.errors import InvalidValue
from netctrl.ns3.cpp import nanoseconds, real

__all__ = ["attribute_defaults", "ns3_attributes"]

_USUAL = {"target_s": 0.015, "tupdate_s": 0.015}


def ns3_attributes(name: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Attributes of the queue disc, with its TypeId.

    Parameters
    ----------
    name, parameters
        Of a `netctrl.model.law.QueueLaw`.

    Raises
    ------
    InvalidValue
        A law that ns-3's queue disc doesn't compute: another one, or PIE with Linux's spacing of drops.
    """
    given = {**_USUAL, **parameters}
    if name != "pie" or given.get("implementation", "linux") != "rfc":
        takes = (
            "pie in real numbers, as netctrl design pie --rfc makes it: ns-3's PIE chooses packets independently, "
            "and it has no other of these laws"
        )
        raise InvalidValue("law", name, takes)
    return {
        "TypeId": "ns3::PieQueueDisc",
        "A": real(given["alpha"]),
        "B": real(given["beta"]),
        "Tupdate": f"{nanoseconds('tupdate', given['tupdate_s'])}ns",
        "QueueDelayReference": f"{nanoseconds('target', given['target_s'])}ns",
        "UseDequeueRateEstimator": "true" if given.get("dq_rate_estimator") else "false",
    }


def attribute_defaults(attributes: Mapping[str, str]) -> str:
    """Lines of a file that ns-3's ConfigStore loads as RawText: defaults of a queue disc's attributes."""
    kind = attributes["TypeId"]
    return "".join(f'default {kind}::{key} "{text}"\n' for key, text in attributes.items() if key != "TypeId")
