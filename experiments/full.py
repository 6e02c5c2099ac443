"""Full runs in ns-3 and in the kernel, kept in data/results/: `python experiments/full.py STUDY [NUMBER ...]`.

In ns-3 they take hours; in the kernel, whose studies begin with linux-, minutes, as root, on a quiet machine.
Those that begin with virtual- take the kernel of `netctrl kernel build`, in virtual time, on any machine.

Each point and seed, or number of a run, is kept as soon as it is done, so that what a stop interrupts can go on later;
a second call runs only what is missing.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import ModuleType

from arc.traffic import STUDIES, Study, keep, kept, under
from engines import validate
from hftrac import fig13, fig15, fig16
from hftrac.packet_study import PacketStudy, make, missing
from linux import connet_study, hftrac_study, virtual_arc, virtual_connet, virtual_hftrac, virtual_pacing
from pacing import bottleneck
from packets import FASTER, run_ns3

PACKET_STUDIES = {each.STUDY.name: each.STUDY for each in (fig13, fig15, fig16)}
REPEATED = {
    each.NAME: each
    for each in (
        connet_study,
        hftrac_study,
        virtual_arc,
        virtual_connet,
        virtual_hftrac,
        virtual_pacing,
        *validate.STUDIES,
    )
}


def main(argv: list[str]) -> int:
    names = [*STUDIES, *PACKET_STUDIES, bottleneck.NAME, *REPEATED]
    if not argv or argv[0] not in names or not all(number.isdecimal() for number in argv[1:]):
        print(f"usage: full.py STUDY [NUMBER ...]; studies: {', '.join(names)}", file=sys.stderr)
        return 2
    os.environ.update(FASTER)
    name, numbers = argv[0], [int(number) for number in argv[1:]]
    if name in STUDIES:
        run_seeds(STUDIES[name], numbers or STUDIES[name].seeds)
    elif name == bottleneck.NAME:
        bottleneck.run_study(numbers or bottleneck.SEEDS, os.cpu_count() or 1)
    elif name in REPEATED:
        run_repeats(REPEATED[name], numbers or REPEATED[name].REPEATS)
    else:
        run_points(PACKET_STUDIES[name], numbers or range(PACKET_STUDIES[name].runs))
    return 0


def run_seeds(study: Study, seeds: Sequence[int]) -> None:
    desired = [(scheme, seed) for seed in seeds for scheme in study.schemes]
    lacking = [case for case in desired if case not in kept(study)]
    print(f"{study.name}: {len(lacking)} of {len(desired)} runs to do", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            pool.submit(run_ns3, under(study.scenario, study.schemes[scheme], seed)): (scheme, seed)
            for scheme, seed in lacking
        }
        for done in as_completed(runs):
            scheme, seed = runs[done]
            keep(study, scheme, done.result())
            print(f"{study.name}: {scheme}, seed {seed}", flush=True)


def run_points(study: PacketStudy, runs: Sequence[int]) -> None:
    lacking = missing(study, runs)
    print(f"{study.name}: {len(lacking)} of {len(study.cases) * len(runs)} runs to do", flush=True)
    with warnings.catch_warnings(action="ignore"):  # delays are rounded to the sampling interval
        for case, run in make(study, lacking):
            print(f"{study.name}: {', '.join(map(str, case))}, run {run}", flush=True)


def run_repeats(study: ModuleType | validate.Study, repeats: Sequence[int]) -> None:
    lacking = study.missing(repeats)
    print(f"{study.NAME}: {len(lacking)} of {len(repeats)} repeats to do", flush=True)
    for done in study.make(lacking):
        print(f"{study.NAME}: repeat {done.number}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
