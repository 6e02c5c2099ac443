"""Make the figures: `python experiments/figures.py [PAPER/NAME ...]`; without names those that have changed. A name
is that of a module with a function `main`, or of a module and a function.

A figure is unchanged where all that it depends on is as it was when its numbers last held on this machine: the files of
experiments/ and netctrl/ that it imports or that were loaded when it was made, the kept studies that it read, the rest
of data/, ns-3, and the installed packages' versions. `--all` makes every one.

Exit status 1 where a number is no longer what data/claims/ has, or its verdict another. `--claims` then stores the
number, and the verdict follows. `--docs` copies pictures and tables to docs/assets/; `--full` runs the onset and Fig. 4
in ns-3 in full length (the traffic studies' full runs are experiments/full.py's). Without an ns-3 its numbers are left
out.
"""

import hashlib
import importlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.metadata import distributions
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from common import Compared, store, write
from packets import FASTER, available, find_ns3
from threadpoolctl import threadpool_limits

import netctrl
from netctrl.core.files import user_cache
from netctrl.model.datasets import PAPERS, claims

HERE = Path(__file__).resolve().parent
FIGURES = tuple(
    f"{paper}/{name}"
    for paper, names in {
        "arc": "fig03 configuration onset peers fig04 loads.fig05 loads.fig06 loads.fig07 loads.fig08 loads.fig11",
        "hftrac": "architectures norms limits fig02 fig03 fig06 fig07 fig08 credit fig10 fig11 fig12 fig13 fig15 fig16",
        "connet": "fig03 fig05 fig07 fig10 fig12 fig13 fig14 ns3",
        "mpcc": "fig03 fig05 fig06 weights ns3",
        "pacing": "fig02 fig03 fig04 fig05 bbr freeze parameters ns3",
        "linux": "arc_virtual connet_virtual hftrac_virtual hftrac_fig10b hftrac_fig14 pacing_virtual",
    }.items()
    for name in names.split()
)
OPTIONS = ("--all", "--claims", "--docs", "--full")
PACKAGE = Path(netctrl.__file__).resolve().parent
MARKS = (user_cache() or HERE) / "figures"
RESULTS = HERE.parent / "data" / "results"
IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)
IN_NS3 = ("connet/ns3", "mpcc/ns3")
"""Left out where there is no ns-3: a simulator isn't beside itself."""


class Made(NamedTuple):
    name: str
    picture: str
    rows: list[Compared]
    seconds: float
    loaded: list[str]
    """Files of netctrl, experiments/ and data/results/ that the process has read, for this figure or one before it."""


_read: set[Path] = set()
"""Kept studies that this process has opened."""


def _opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        path = Path(arguments[0])
        if path.parent.name == RESULTS.name and path.resolve().parent == RESULTS:
            _read.add(RESULTS / path.name)


sys.addaudithook(_opened)


def make(name: str, argv: list[str]) -> Made:
    """One figure: its files in PAPER/out/, with `--docs` in docs/assets/ too."""
    start = time.perf_counter()
    paper, script = name.split("/")
    module, _, function = script.partition(".")
    with threadpool_limits(limits=1, user_api="blas"):  # every core has a process already
        outcome = getattr(importlib.import_module(f"{paper}.{module}"), function or "main")(full="--full" in argv)
    folder = HERE / paper / "out"
    rows = write(outcome, folder, ["experiments/figures.py", *argv])
    picture = folder / f"{outcome.name}.png"
    if "--docs" in argv:
        asset = HERE.parent / "docs" / "assets" / f"{paper}-{outcome.name}"
        shutil.copy(picture, asset.with_suffix(".png"))
        if outcome.table is not None:
            outcome.table.to_csv(asset.with_suffix(".csv"), index=False)
    files = [Path(str(getattr(module, "__file__", ""))) for module in list(sys.modules.values())]
    loaded = [str(file) for file in [*files, *_read] if {PACKAGE, HERE, RESULTS} & set(file.parents)]
    return Made(name, str(picture.relative_to(HERE.parent)), rows, time.perf_counter() - start, loaded)


@cache
def hash_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


@cache
def imported_by(source: Path) -> frozenset[Path]:
    """Files of netctrl and of experiments/ that a source imports anywhere; of a package all."""
    found: set[Path] = set()
    for name in IMPORT.findall(source.read_text(encoding="utf-8")):
        place = (PACKAGE.parent if name.partition(".")[0] == "netctrl" else HERE).joinpath(*name.split("."))
        file = place.with_suffix(".py")
        found.update([file] if file.is_file() else place.glob("__init__.py" if place == PACKAGE else "*.py"))
    return frozenset(found)


@cache
def surroundings() -> str:
    """Hash of what all figures depend on: data/ but for its results/, the package's files for ns-3 and others that
    aren't Python, the installed packages' versions, and which ns-3 there is."""
    packages = sorted((each.name, each.version) for each in distributions() if each.name != "netctrl")
    digest = hashlib.sha256(repr([sys.version, packages, find_ns3() if available() else None]).encode())
    for folder in (HERE.parent / "data", PACKAGE):
        for file in sorted(folder.rglob("*")):
            apart = (
                file.suffix in (".py", ".pyc") or "kernels" in file.parts or file.parts[-3:-1] == ("data", "results")
            )
            if file.is_file() and not apart:
                digest.update(f"{file.name} {hash_of(file)}".encode())
    return digest.hexdigest()


def depends_on(name: str, loaded: Iterable[str] = ()) -> dict[str, str]:
    """Hashes of the files that a figure depends on, by their names: those that were loaded, and all that these and the
    figure's script import, when they are loaded or later."""
    files: set[Path] = set()
    ahead = {HERE / f"{name.partition('.')[0]}.py", HERE / "figures.py", *map(Path, loaded)}
    while ahead:
        files |= ahead
        ahead = {each for file in ahead if file.suffix == ".py" for each in imported_by(file)} - files
    known = {str(file.relative_to(PACKAGE.parent if PACKAGE in file.parents else HERE.parent)): file for file in files}
    return {name: hash_of(file) for name, file in sorted(known.items())} | {"surroundings": surroundings()}


def is_unchanged(name: str) -> bool:
    """Whether a figure's mark, which its numbers left when they held, still tells what it depends on."""
    try:
        kept = json.loads(MARKS.joinpath(f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return False
    places = (PACKAGE.parent, HERE.parent)
    now = {file: next((found for place in places if (found := hash_of(place / file))), "") for file in kept}
    return kept == now | depends_on(name)


def main(argv: list[str]) -> int:
    names = [name for name in argv if name not in OPTIONS]
    only_changed = not names and set(argv).isdisjoint(OPTIONS)
    names = names or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        print(f"error: no figure {unknown[0]!r}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    left_out = [] if available() else [name for name in names if name in IN_NS3]
    names = [name for name in names if name not in left_out]
    if left_out:
        print(f"without an ns-3 left out: {', '.join(left_out)}")
    if only_changed:
        changed = [name for name in names if not is_unchanged(name)]
        print(f"unchanged since their numbers held: {len(names) - len(changed)} figures; `--all` makes them, too")
        names = changed
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
            if all(row.holds for row in made.rows):
                mark = MARKS / f"{made.name}.json"
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.write_text(json.dumps(depends_on(made.name, made.loaded), indent=0), encoding="utf-8")
            if "--claims" in argv:
                store(made.name.split("/")[0], made.rows)
    rest = [f"{paper}/{claim.id}" for paper in PAPERS for claim in claims(paper) if claim.verdict == "open"]
    print(f"\n{fallen} numbers or verdicts fell; claims that are open: {', '.join(rest) or 'none'}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
