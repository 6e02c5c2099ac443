"""Make the figures: `python experiments/figures.py [PAPER/NAME ...]`; all of them without arguments.

Exit status 1 where a number that data/claims/ calls reproduced, or any other computed verdict, no longer stands.
`--docs` also copies pictures and tables to docs/assets/; `--full` runs the onset in ns-3 in full length (the traffic
studies' full runs are experiments/full.py's). Without an ns-3 its numbers are left out.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from pathlib import Path

from common import write

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
)


def main(argv: list[str]) -> int:
    copy = "--docs" in argv
    full = "--full" in argv
    names = [name for name in argv if name not in ("--docs", "--full")] or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        print(f"error: no figure {unknown[0]!r}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    fallen = 0
    for name in names:
        paper, script = name.split("/")
        start = time.perf_counter()
        outcome = importlib.import_module(f"{paper}.{script}").main(full=full)
        folder = HERE / paper / "out"
        rows = write(outcome, folder, ["experiments/figures.py", *argv])
        seconds = time.perf_counter() - start
        print(f"\n{name}: {folder.relative_to(HERE.parent) / outcome.name}.png, {seconds:.0f} s", flush=True)
        for row in rows:
            mark = "ok  " if row["holds"] else "FELL"
            print(f"  {mark} {row['id']:<24} {row['verdict']:<17} {row['computed']:>14.7g}  {row['where']}")
            fallen += not row["holds"]
        if copy:
            asset = HERE.parent / "docs" / "assets" / f"{paper}-{outcome.name}"
            shutil.copy(folder / f"{outcome.name}.png", asset.with_suffix(".png"))
            if outcome.table is not None:
                outcome.table.to_csv(asset.with_suffix(".csv"), index=False)
    rest = [f"{paper}/{claim.id}" for paper in PAPERS for claim in claims(paper) if claim.verdict == "open"]
    print(f"\n{fallen} verdicts fell; claims that are open: {', '.join(rest) or 'none'}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
