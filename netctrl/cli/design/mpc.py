"""`netctrl design mpc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import invocation
from netctrl.cli.design.common import Wanted, deliver
from netctrl.cli.options import positional

if TYPE_CHECKING:
    from netctrl.model.design.design import MpcDesign


def mpc(
    problem: Annotated[
        str, positional("FILE", "a TOML file with plant, horizon, weights, bounds and references, as in uplink.toml")
    ],
    /,
    wanted: Wanted | None = None,
) -> int:
    """MPC of any plant, such as a link's rate within bounds, with announced demand, delays and a proof of its loop.

    Examples
    --------
    netctrl design mpc uplink-mpc
    netctrl design mpc uplink-mpc -o mpc.json --plot mpc.png && netctrl simulate --design mpc.json
    """

    def made() -> MpcDesign:
        from netctrl.design.mpc.file import mpc_from_file

        return mpc_from_file(problem, invocation())

    return deliver(wanted, made)
