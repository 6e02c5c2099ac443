"""Access links of tests, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from netctrl.scenario.access.flows import CrossFlow, PremiumFlow, RegulatedFlows
from netctrl.scenario.access.scenario import access_link
from netctrl.scenario.scenario import Scenario


def sources(*each: dict[str, Any]) -> tuple[RegulatedFlows, ...]:
    """Regulated groups with these fields, named by their places."""
    return tuple(RegulatedFlows(id=f"source{place}", **fields) for place, fields in enumerate(each))


def crossing(*each: dict[str, Any]) -> tuple[CrossFlow, ...]:
    """Cross traffic with these fields, named by its places."""
    return tuple(CrossFlow(id=f"cross{place}", **fields) for place, fields in enumerate(each))


def link_of(
    *,
    premium: PremiumFlow | None = None,
    regulated: Sequence[RegulatedFlows] | None = None,
    cross: Sequence[CrossFlow] = (),
    every: dict[str, Any] | None = None,
    **fields: Any,
) -> Scenario:
    """The default access link with other groups and fields; `every` changes all regulated groups."""
    groups = sources({}, {}, {}) if regulated is None else regulated
    held = [msgspec.structs.replace(each, **every or {}) for each in groups]
    return access_link(**{"flows": (premium or PremiumFlow(), *held, *cross)} | fields)
