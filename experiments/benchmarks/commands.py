"""Whole commands, from the start of Python to its end."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from rows import Row, against, alternate

CASES = (
    (("-m", "netctrl.design", "arc", "--N", "50"), "import numpy, scipy.optimize", 3.0),
    (("-m", "netctrl", "certify", "dualpi2", "--rtt", "50ms", "--window", "8"), "import numpy, scipy.optimize", 2.0),
    (("-m", "netctrl.design", "--help"), "import numpy", 1.3),
    (("-m", "netctrl.design", "arc", "--help"), "import numpy", 1.3),
)


def rows() -> Iterator[Row]:
    for command, imports, most in CASES:
        turns = alternate(process(*command), process("-c", imports), rounds=15)
        name = f"python {' '.join(command)}"
        target = f"<= {most:g}x the time"
        yield against(name, f"python -c '{imports}'", turns, target, "imports alone")


def process(*arguments: str) -> Callable[[], object]:
    # In an empty folder: what is installed is measured, not the checkout.
    return lambda: subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir()
    )
