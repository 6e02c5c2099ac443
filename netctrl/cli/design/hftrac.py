"""`netctrl design hftrac`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import invocation, option, workers
from netctrl.cli.design.common import Wanted, deliver, read
from netctrl.cli.names import NetworkName
from netctrl.errors import FileError, InvalidValue
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    parse_count,
    parse_duration,
    parse_rate,
)

if TYPE_CHECKING:
    from netctrl.model.design.design import HftracDesign

__all__ = ["hftrac"]

MU_TAKES = "a weight above 0 (lambda·interval²) of squared backlogs, as in 1; by default each link's own"
HORIZON_TAKES = "auto, exact, or a whole number of samples, as in 24"
JOBS_TAKES = "a number of threads of at least 1, or -1: one for each core"
STD_TAKES = "a share of each one's mean, as in 10%, or a rate, as in 2Mbit"
MYOPIC_TAKES = "auto (static gains) or a filter length"


def hftrac(
    wanted: Wanted | None = None,
    *,
    network: Annotated[
        NetworkName, option("FILE", "node-link JSON with demands, or the name of one that comes with netctrl")
    ],
    interval: Annotated[str, option("TIME", f"interval at which rates are set: {DURATION_TAKES}")] = "10ms",
    mu: Annotated[str | None, option("MU", MU_TAKES)] = None,
    architecture: Annotated[str, option("NAME", "god, centralized, coordinated or myopic")] = "coordinated",
    information_delay: Annotated[
        str | None, option("N", "round-trip delay to a central controller, in samples")
    ] = None,
    communication: Annotated[str, option("HOW", "for coordinated control: out-of-band or in-band")] = "out-of-band",
    horizon: Annotated[str, option("T", f"{HORIZON_TAKES}; for myopic control {MYOPIC_TAKES}")] = "auto",
    reach: Annotated[
        str | None, option("N", "leave out links off the route that receive data after more than N samples")
    ] = None,
    std: Annotated[
        str | None, option("STD", f"standard deviation of demands for which the file gives none: {STD_TAKES}")
    ] = None,
    capacity: Annotated[str | None, option("RATE", "capacity of links for which the file gives none")] = None,
    demand_unit: Annotated[str | None, option("RATE", "rate of a demand of 1 if the file gives no unit")] = None,
    jobs: Annotated[str, option("N", "threads of the localized synthesis, -1: all cores")] = "-1",
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
    arguments: dict[str, Any] = {
        "interval_s": read("interval", interval, parse_duration, DURATION_TAKES),
        "mu": None if mu is None else read("mu", mu, parse_count, MU_TAKES),
        "std": std,
        "architecture": architecture,
        "information_delay": _read_samples("information_delay", information_delay),
        "communication": communication,
        "horizon": horizon if horizon in ("auto", "exact") else read("horizon", horizon, int, HORIZON_TAKES),
        "reach": _read_samples("reach", reach),
        "compare": compare,
        "n_jobs": read("jobs", jobs, int, JOBS_TAKES),
        "argv": invocation(),
    }
    rate = None if capacity is None else read("capacity", capacity, parse_rate, RATE_TAKES)
    unit = None if demand_unit is None else read("demand_unit", demand_unit, _rate_or_0, f"0bit, or {RATE_TAKES}")

    def made() -> HftracDesign:
        import netctrl
        from netctrl.datasets import network_path
        from netctrl.model.network import read_network

        path = network_path(network)
        try:
            with workers(dask):
                found = read_network(path, capacity=rate, demand_unit=unit)
                return netctrl.hftrac(found, inputs=[path], **arguments)
        except InvalidValue as error:
            if "." in error.argument or error.argument == "demands":  # an element of the network
                raise FileError(path, str(error)) from None
            raise

    return deliver(wanted, made)


def _read_samples(argument: str, text: str | None) -> int | None:
    return None if text is None else read(argument, text, int, "a whole number of samples of at least 0, as in 2")


def _rate_or_0(text: str) -> float:
    return parse_rate(text, zero=True)
