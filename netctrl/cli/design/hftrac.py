"""`netctrl design hftrac`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import invocation, workers
from netctrl.cli.cases import NetworkAdded, NetworkName, read_added
from netctrl.cli.design.common import Wanted, deliver
from netctrl.cli.options import TIME, given, kind, option
from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.units import DURATION_TAKES, parse_count

if TYPE_CHECKING:
    from netctrl.model.design.design import HftracDesign

MU_TAKES = "a weight above 0 (lambda·interval²) of squared backlogs, as in 1; by default each link's own"
HORIZON_TAKES = "auto, exact, truncated, or a whole number of samples, as in 24"
JOBS_TAKES = "a number of threads of at least 1, or -1: one for each core"
STD_TAKES = "a share of each one's mean, as in 10%, or a rate, as in 2Mbit"
MYOPIC_TAKES = "auto (static gains) or a filter length"
_MU = kind("MU", parse_count, MU_TAKES)
_SAMPLES = kind("N", int, "a whole number of samples of at least 0, as in 2")
_HORIZON = kind("T", lambda text: text if text in ("auto", "exact", "truncated") else int(text), HORIZON_TAKES)
TOLERANCE_TAKES = "a number above 0 and below 1"
_TOLERANCE = kind("EPS", float, TOLERANCE_TAKES)
_THREADS = kind("N", int, JOBS_TAKES)


def hftrac(
    wanted: Wanted | None = None,
    *,
    network: Annotated[
        NetworkName,
        option("FILE", "a network's file in any format, or the name of one that comes with netctrl, as in tandem"),
    ],
    interval_s: Annotated[float, TIME(f"interval at which rates are set: {DURATION_TAKES}", default="10ms")] = 0.01,
    mu: Annotated[float | None, _MU(MU_TAKES)] = None,
    architecture: Annotated[
        str | None, option("NAME", "god, centralized, coordinated or myopic", default="coordinated")
    ] = None,
    information_delay: Annotated[int | None, _SAMPLES("round-trip delay to a central controller, in samples")] = None,
    communication: Annotated[
        str | None, option("HOW", "for coordinated control: out-of-band or in-band", default="out-of-band")
    ] = None,
    horizon: Annotated[
        int | str | None, _HORIZON(f"{HORIZON_TAKES}; for myopic control {MYOPIC_TAKES}", default="auto")
    ] = None,
    reach: Annotated[
        int | None, _SAMPLES("leave out links off the route that receive data after more than N samples")
    ] = None,
    tolerance: Annotated[
        float | None, _TOLERANCE(f"excess over the least cost that auto aims at: {TOLERANCE_TAKES}", default="1e-3")
    ] = None,
    std: Annotated[
        str | None, option("STD", f"standard deviation of demands for which the file gives none: {STD_TAKES}")
    ] = None,
    added: NetworkAdded | None = None,
    n_jobs: Annotated[int, _THREADS("threads of the localized synthesis, -1: all cores", "--jobs", default="-1")] = -1,
    dask: Annotated[
        str | None, option("ADDRESS", "Dask scheduler on whose workers to run, as in tcp://127.0.0.1:8786")
    ] = None,
    compare: Annotated[bool, option("", "show all four architectures side by side")] = False,
) -> int:
    """HFTraC sets the rates of a network's links from backlogs and rates, and gives each architecture's cost.

    Examples
    --------
    netctrl design hftrac --network testbed --mu 1
    netctrl design hftrac --network abilene --mu 1 --architecture myopic -o hftrac.json
    """
    asked = given(locals(), "wanted", "network", "added", "dask")

    def made() -> HftracDesign:
        import netctrl

        found, notes, paths = read_added(network, added)
        for note in notes:
            warnings.warn(note, stacklevel=1)
        try:
            with workers(dask):
                return netctrl.hftrac(found, inputs=paths, argv=invocation(), **asked)
        except InvalidValue as error:
            if "." in error.argument or error.argument == "demands":  # an element of the network
                raise FileError(network, str(error)) from None
            raise

    return deliver(wanted, made)
