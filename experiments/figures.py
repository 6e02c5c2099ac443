"""Make the figures: `python experiments/figures.py [PAPER/NAME ...]`; all of them without arguments.

Exit status 1 where a number is no longer what data/claims/ has, or its verdict another. `--claims` then stores the
number, and the verdict follows. `--docs` copies pictures and tables to docs/assets/; `--full` runs the onset and Fig. 4
in ns-3 in full length (the traffic studies' full runs are experiments/full.py's). Without an ns-3 its numbers are left
out.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from common import Compared, store, write
from packets import FASTER, available
from threadpoolctl import threadpool_limits

from netctrl.datasets import PAPERS, claims

HERE = Path(__file__).resolve().parent
FIGURES = (
    "arc/fig03",
    "arc/configuration",
    "arc/onset",
    "arc/peers",
    "arc/fig04",
    "arc/fig05",
    "arc/fig06",
    "arc/fig07",
    "arc/fig08",
    "arc/fig11",
    "hftrac/architectures",
    "hftrac/norms",
    "hftrac/limits",
    "hftrac/fig02",
    "hftrac/fig03",
    "hftrac/fig06",
    "hftrac/fig07",
    "hftrac/fig08",
    "hftrac/fig10",
    "hftrac/fig11",
    "hftrac/fig12",
    "hftrac/fig13",
    "hftrac/fig15",
    "hftrac/fig16",
    "connet/fig03",
    "connet/fig05",
    "connet/fig07",
    "connet/fig10",
    "connet/fig12",
    "connet/fig13",
    "connet/fig14",
    "connet/ns3",
    "mpcc/fig03",
    "mpcc/fig05",
    "mpcc/fig06",
    "mpcc/weights",
    "mpcc/ns3",
    "pacing/fig02",
    "pacing/fig03",
    "pacing/fig04",
    "pacing/fig05",
    "pacing/bbr",
    "pacing/freeze",
    "pacing/parameters",
    "pacing/ns3",
    "linux/connet_curve",
    "linux/connet_identification",
    "linux/connet_fig10",
    "linux/connet_fig11",
    "linux/connet_fig13",
    "linux/hftrac_fig06",
    "linux/hftrac_fig07",
    "linux/hftrac_fig10",
    "linux/hftrac_fig13",
    "linux/arc_virtual",
    "linux/connet_virtual",
    "linux/hftrac_virtual",
    "linux/hftrac_fig10b",
    "linux/hftrac_fig14",
    "linux/pacing_virtual",
)
OPTIONS = ("--claims", "--docs", "--full")
IN_NS3 = ("connet/ns3", "mpcc/ns3")
"""Left out where there is no ns-3: a simulator isn't beside itself."""


class Made(NamedTuple):
    name: str
    picture: str
    rows: list[Compared]
    seconds: float


def make(name: str, argv: list[str]) -> Made:
    """One figure: its files in PAPER/out/, with `--docs` in docs/assets/ too."""
    start = time.perf_counter()
    paper, script = name.split("/")
    with threadpool_limits(limits=1, user_api="blas"):  # every core has a process already
        outcome = importlib.import_module(f"{paper}.{script}").main(full="--full" in argv)
    folder = HERE / paper / "out"
    rows = write(outcome, folder, ["experiments/figures.py", *argv])
    picture = folder / f"{outcome.name}.png"
    if "--docs" in argv:
        asset = HERE.parent / "docs" / "assets" / f"{paper}-{outcome.name}"
        shutil.copy(picture, asset.with_suffix(".png"))
        if outcome.table is not None:
            outcome.table.to_csv(asset.with_suffix(".csv"), index=False)
    return Made(name, str(picture.relative_to(HERE.parent)), rows, time.perf_counter() - start)


def main(argv: list[str]) -> int:
    names = [name for name in argv if name not in OPTIONS] or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        print(f"error: no figure {unknown[0]!r}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    left_out = [] if available() else [name for name in names if name in IN_NS3]
    names = [name for name in names if name not in left_out]
    if left_out:
        print(f"without an ns-3 left out: {', '.join(left_out)}")
    os.environ.update(FASTER)
    fallen = 0
    # A process for each core: what of a figure is done one after the other leaves no core idle.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for made in pool.map(make, names, repeat(argv)):
            print(f"\n{made.name}: {made.picture}, {made.seconds:.0f} s", flush=True)
            for row in made.rows:
                mark = "ok  " if row.holds else "FELL"
                print(f"  {mark} {row.kept.id:<24} {row.now.verdict:<17} {row.now.value:>14.7g}  {row.kept.where}")
                fallen += not row.holds
            if "--claims" in argv:
                store(made.name.split("/")[0], made.rows)
    rest = [f"{paper}/{claim.id}" for paper in PAPERS for claim in claims(paper) if claim.verdict == "open"]
    print(f"\n{fallen} numbers or verdicts fell; claims that are open: {', '.join(rest) or 'none'}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
