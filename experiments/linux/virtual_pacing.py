"""Pacing in virtual time, kept in data/results/: `python experiments/full.py virtual-pacing [REPEAT ...]`.

The runs of `pacing`, which are in wall-clock time, with H-TCP as another sender and fq_codel as another queue. Where
acknowledgements come each by itself, the kernel's netem delays them; bunches need the delay line of the testbed.
"""

from itertools import product

import msgspec
import pandas as pd
from linux import pacing
from linux.iproute import program
from linux.virtual import called
from study import Case, Made, Record, Study, kernel_used, made_by

from netctrl.kernel.build import chosen_kernel
from netctrl.linux.testbed.bed import Testbed
from netctrl.model.network import Network

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


def record(before: Record, data: pd.DataFrame, case: Case, about: None) -> Record:
    return before | {
        "network": msgspec.json.decode(pacing.NETWORK.to_json()),
        "senders": {name: sender._asdict() for name, sender in ALL.items()},
        "paths": pacing.PATHS,
        "seconds": pacing.SECONDS,
        "warm_up_s": pacing.WARM_UP,
        "probes_per_s": pacing.PROBES,
        "kernel": kernel_used(chosen_kernel()),
        "seed": "repeat",
        "runs": len(data),
    }


STUDY = Study(
    name="virtual-pacing",
    key=("queue", "path", "sender", "repeat"),
    repeats=(1, 2, 3),
    cases=lambda repeat: [(*case, repeat) for case in cases()],
    runs=made_by(lambda *key: Made([called("linux.virtual_pacing:inside", *key[:-1], seed=key[-1])])),
    record=record,
)
