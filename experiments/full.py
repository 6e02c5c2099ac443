"""Full runs in ns-3 and in the kernel, kept in data/results/: `python experiments/full.py STUDY [NUMBER ...]`.

In ns-3 they take hours. hftrac-credit, and those that begin with virtual-, take the kernel of `netctrl kernel build`.
A second call runs only what is missing. Without arguments it lists the studies.
"""

import os
import sys
import warnings

from arc import traffic
from engines import certified, judges, validate
from hftrac import credit, fig13, fig15, fig16
from linux import virtual_arc, virtual_connet, virtual_hftrac, virtual_pacing
from mpcc import fat_tree
from pacing import bottleneck
from packets import FASTER

ALONE = (credit, fig13, fig15, fig16, bottleneck, fat_tree, judges)
VIRTUAL = (virtual_arc, virtual_connet, virtual_hftrac, virtual_pacing)
STUDIES = {
    study.name: study
    for study in (
        *(each.full for each in traffic.STUDIES.values()),
        *(module.STUDY for module in (*ALONE, *VIRTUAL)),
        *validate.STUDIES,
        *certified.STUDIES,
    )
}


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in STUDIES or not all(number.isdecimal() for number in argv[1:]):
        print(f"usage: full.py STUDY [NUMBER ...]; studies: {', '.join(STUDIES)}", file=sys.stderr)
        return 2
    os.environ.update(FASTER)
    study, repeats = STUDIES[argv[0]], [int(number) for number in argv[1:]]
    print(f"{study.name}: {len(study.missing(repeats or study.repeats))} runs to do", flush=True)
    with warnings.catch_warnings(action="ignore"):  # delays are rounded to the sampling interval
        for case in study.make(repeats or study.repeats):
            print(f"{study.name}: {', '.join(map(str, case))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
