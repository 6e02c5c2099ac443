"""Options of PI laws that `netctrl certify` and `netctrl design` have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import option, read_whole
from netctrl.cli.certify.common import duration
from netctrl.units import DURATION_TAKES

__all__ = ["TARGET", "TUPDATE", "TwoQueues", "times"]

TARGET = option("TIME", f"target of the queueing delay: {DURATION_TAKES}")
TUPDATE = option("TIME", f"between two updates: {DURATION_TAKES}")
_COUPLING_TAKES = "a whole factor above 0, as in 2"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TwoQueues:
    """Options of DualPI2 beside its PI law."""

    coupling_factor: Annotated[
        str, option("NUMBER", f"from p' to the scalable queue's probability: {_COUPLING_TAKES}")
    ] = "2"
    step_thresh: Annotated[str, option("TIME", f"step of the scalable queue: {DURATION_TAKES}")] = "1ms"
    drop_early: Annotated[bool, option("", "packets are chosen as they come, not as they leave")] = False

    def parameters(self) -> dict[str, Any]:
        """The law's parameters."""
        return {
            "coupling": read_whole("coupling_factor", self.coupling_factor, _COUPLING_TAKES),
            "step_s": duration("step_thresh", self.step_thresh),
            "drop_early": self.drop_early,
        }


def times(target: str, tupdate: str, names: tuple[str, str] = ("target", "tupdate")) -> dict[str, float]:
    """Parameters of a PI law that are times; names of their options."""
    return {"target_s": duration(names[0], target), "tupdate_s": duration(names[1], tupdate)}
