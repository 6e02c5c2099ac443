"""One table of ratios, each against a named peer in the same run: `python experiments/benchmarks/run.py [GROUP ...]`.

A group is a file here with a function `rows`. How rows are timed: `rows.py`. Exit status 1: the
answers of a row differ, so that its ratio says nothing, or a group couldn't be measured to its end; others are.
"""

import argparse
import importlib
import os
import sys
import traceback
from importlib.metadata import version
from pathlib import Path

GROUPS = (
    "arc",
    "certificates",
    "fluid",
    "links",
    "fifo",
    "engine",
    "kernel",
    "fabric",
    "commands",
    "hftrac",
    "ident",
    "mpc",
    "pacing",
    "exported",
    "linux",
)
HELP = f"{', '.join(GROUPS)}; default: all"
LIBRARIES = ("numpy", "scipy", "numba", "control", "cvxpy", "osqp", "casadi", "daqp")


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure speed against named peers.")
    # A default is checked like what is given, so it has to be one of the choices: Python 3.11 refuses an empty list.
    parser.add_argument("groups", nargs="*", choices=(*GROUPS, "all"), default="all", metavar="GROUP", help=HELP)
    requested = parser.parse_args().groups
    groups = GROUPS if "all" in requested else requested
    # One core, for numpy's threads too: set before numpy is loaded, and inherited by the processes that are timed.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    sys.path.append(str(Path(__file__).resolve().parent.parent))  # experiments/, for packets

    from rows import table

    import netctrl

    versions = (f"{name} {version(name)}" for name in LIBRARIES)
    print(f"netctrl {netctrl.__version__}, {', '.join(versions)}; one core; median (min to max)\n", flush=True)
    found, fell = [], []
    for name in groups:
        try:
            for row in importlib.import_module(name).rows():
                found.append(row)
        except Exception:
            fell.append(name)
            traceback.print_exc()
    print(table(found))
    if fell:
        print(f"\nnot measured to the end: {', '.join(fell)}")
    return 0 if not fell and all(row.counts for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
