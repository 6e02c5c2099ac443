"""Full runs in ns-3, kept in data/results/: `python experiments/full.py STUDY [SEED ...]`; hours, not minutes.

Each scheme and seed is kept as soon as it is done, so that what a stop interrupts can go on later; a second call runs
only what is missing.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from arc.traffic import SEEDS, STUDIES, keep, kept, under
from packets import FASTER, run_ns3


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in STUDIES or not all(seed.isdecimal() for seed in argv[1:]):
        print(f"usage: full.py STUDY [SEED ...]; studies: {', '.join(STUDIES)}", file=sys.stderr)
        return 2
    os.environ.update(FASTER)
    study = STUDIES[argv[0]]
    wanted = [(scheme, seed) for seed in map(int, argv[1:] or map(str, SEEDS)) for scheme in study.schemes]
    missing = [case for case in wanted if case not in kept(study)]
    print(f"{study.name}: {len(missing)} of {len(wanted)} runs to do", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            pool.submit(run_ns3, under(study.scenario, study.schemes[scheme], seed)): (scheme, seed)
            for scheme, seed in missing
        }
        for done in as_completed(runs):
            scheme, seed = runs[done]
            keep(study, scheme, done.result())
            print(f"{study.name}: {scheme}, seed {seed}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
