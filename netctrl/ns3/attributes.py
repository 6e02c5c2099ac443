"""PIE in the real numbers of RFC 8033, and a step threshold, as attributes of ns-3's own queue discs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.step import CODEL_UNIT_NS, STEP_LIMIT, STEP_OFF_S, StepLaw, codel_units, step_law
from netctrl.ns3.cpp import nanoseconds, real

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
    if name == "dctcp":
        return _step(step_law(parameters, "bytes", "packets", "time"))
    given = {**_USUAL, **parameters}
    if name != "pie" or given.get("implementation", "linux") != "rfc":
        takes = (
            "pie in real numbers or a threshold, as netctrl design pie --rfc and ecn make them: ns-3's PIE chooses "
            "packets independently, and it has no other of these laws"
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


def _step(step: StepLaw) -> dict[str, str]:
    """RED that marks each packet that finds more than K, or CoDel that marks by a packet's wait alone."""
    if step.unit == "time":
        off = f"{nanoseconds('target', max(STEP_OFF_S, step.threshold * STEP_LIMIT))}ns"
        return {
            "TypeId": "ns3::CoDelQueueDisc",
            "UseEcn": "true",
            "CeThreshold": f"{codel_units(step.threshold) * CODEL_UNIT_NS}ns",
            "Target": off,
            "Interval": off,
        }
    least = real(float(step.marked_from))
    return {
        "TypeId": "ns3::RedQueueDisc",
        "UseEcn": "true",
        "UseHardDrop": "false",
        "Gentle": "false",
        "QW": "1",
        "MinTh": least,
        "MaxTh": least,
        "MaxSize": f"{step.limit}{'B' if step.unit == 'bytes' else 'p'}",
    }


def attribute_defaults(attributes: Mapping[str, str]) -> str:
    """Lines of a file that ns-3's ConfigStore loads as RawText: defaults of a queue disc's attributes."""
    kind = attributes["TypeId"]
    return "".join(f'default {kind}::{key} "{text}"\n' for key, text in attributes.items() if key != "TypeId")
