"""`netctrl design mpc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import invocation
from netctrl.cli.cases import ProblemName
from netctrl.cli.design.common import Wanted, deliver
from netctrl.cli.options import positional

if TYPE_CHECKING:
    from netctrl.model.design.design import MpcDesign

_TAKES = "a TOML file with plant, horizon, weights, bounds and references, or one that comes with netctrl, as in uplink"


def mpc(problem: Annotated[ProblemName, positional("FILE", _TAKES)], /, wanted: Wanted | None = None) -> int:
    """MPC of any plant, such as a link's rate within bounds, with announced demand, delays and a proof of its loop.

    Examples
    --------
    netctrl design mpc uplink
    netctrl design mpc uplink -o mpc.json --plot mpc.png && netctrl simulate --design mpc.json
    """

    def made() -> MpcDesign:
        from netctrl.design.mpc.file import mpc_from_file
        from netctrl.model.datasets import problem_path

        return mpc_from_file(problem_path(problem), invocation())

    return deliver(wanted, made)
