"""Pacing in virtual time, kept in data/results/: `python experiments/full.py virtual-pacing [REPEAT ...]`.

The runs of `pacing`, which are in wall-clock time, with H-TCP as another sender and fq_codel as another queue. Where
acknowledgements come each by itself, the kernel's netem delays them; bunches need the delay line of the testbed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from linux import pacing
from linux.iproute import program
from linux.virtual import called
from study_files import kernel_used, read_runs, with_runs, write_record, write_runs

from netctrl.kernel.build import chosen_kernel
from netctrl.linux.testbed.bed import Testbed
from netctrl.model.io.provenance import provenance
from netctrl.model.network import Network

__all__ = ["KEY", "NAME", "REPEATS", "Repeat", "cases", "inside", "kept", "make", "missing"]

NAME = "virtual-pacing"
KEY = ["queue", "path", "sender", "repeat"]
REPEATS = (1, 2, 3)
ALL = {**pacing.SENDERS, "H-TCP": pacing.Sender("htcp", None)}
ALONE, BUNCHES = pacing.PATHS
QUEUES = ("fifo", "fq_codel")
LINE = "each by itself, delay line"
"""As in wall-clock time: the delay line of the testbed without bunches."""
FILLED = "paper's law, R = 200"
"""Fills the buffer in wall-clock time, with either path."""
OUTSIDE = "load"
"""Of the machine, which means nothing inside."""
_PACKETS = "10000"


class Repeat(NamedTuple):
    """One that is done."""

    number: int


def cases() -> list[tuple[str, str, str]]:
    """Queue, path and sender; what few programs carry is first, as it takes less wall time."""
    return [(queue, ALONE, name) for queue, name in product(QUEUES, ALL)] + [
        ("fifo", path, name)
        for path, name in [(BUNCHES, pacing.OURS), *product((BUNCHES, LINE), (FILLED, pacing.PEER))]
    ]


def inside(queue: str, path: str, name: str) -> dict[str, float]:
    """One transfer, called in the kernel."""
    network, bunch = (_undelayed(), 0.0) if path == ALONE else (pacing.NETWORK, pacing.PATHS.get(path, 0.0))

    def furnish(bed: Testbed) -> None:
        if path == ALONE:
            delay = ["delay", f"{1e3 * pacing.DELAY:g}ms", "limit", _PACKETS]
            program(
                bed, "router", ["tc", "qdisc", "replace", "dev", bed.interface(pacing.BACK), "root", "netem", *delay]
            )
        if queue != "fifo":
            program(
                bed, "router", ["tc", "qdisc", "add", "dev", bed.interface(pacing.BOTTLENECK), "parent", "1:1", queue]
            )

    found = pacing.run_one(ALL[name], bunch, network=network, furnish=furnish)
    return {field: value for field, value in found.items() if field != OUTSIDE}


def _undelayed() -> Network:
    links = tuple(msgspec.structs.replace(link, delay=0.0) for link in pacing.NETWORK.links)
    return msgspec.structs.replace(pacing.NETWORK, links=links)


def kept() -> pd.DataFrame | None:
    return read_runs(pacing.RESULTS / f"{NAME}.csv")


def keep(row: dict[str, Any]) -> None:
    data = with_runs(kept(), pd.DataFrame([row]))
    kernel = chosen_kernel()
    record = {
        "study": NAME,
        "network": msgspec.json.decode(pacing.NETWORK.to_json()),
        "senders": {name: sender._asdict() for name, sender in ALL.items()},
        "paths": pacing.PATHS,
        "seconds": pacing.SECONDS,
        "warm_up_s": pacing.WARM_UP,
        "probes_per_s": pacing.PROBES,
        "kernel": kernel_used(kernel),
        "seed": "repeat",
        "runs": len(data),
        "provenance": provenance(argv=["experiments/full.py", *sys.argv[1:]], libraries=("numpy", "numba")),
    }
    write_runs(pacing.RESULTS / f"{NAME}.csv", data)
    write_record(pacing.RESULTS / f"{NAME}.json", record)


def desired(repeats: Sequence[int]) -> list[tuple[str, str, str, int]]:
    """Runs that aren't kept."""
    data = kept()
    made = set() if data is None else set(data[KEY].itertuples(index=False, name=None))
    return [(*case, repeat) for repeat in repeats for case in cases() if (*case, repeat) not in made]


def missing(repeats: Sequence[int]) -> list[int]:
    """Repeats of which a run isn't kept."""
    return sorted({each[-1] for each in desired(repeats)})


def make(repeats: Sequence[int]) -> Iterator[Repeat]:
    """Run what is missing, one after the other; each run is kept, and told, as soon as it is done."""
    for repeat in repeats:
        for *case, _ in desired([repeat]):
            found = called("linux.virtual_pacing:inside", *case, seed=repeat)
            row = dict(zip(KEY, [*case, repeat], strict=True)) | found
            keep(row)
            print(
                f"{', '.join(map(str, case))}, {repeat}: {row['mbit']:.4g} Mbit/s, {row['rtt_ms']:.4g} ms", flush=True
            )
        yield Repeat(repeat)
