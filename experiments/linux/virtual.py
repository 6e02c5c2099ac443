"""A function of the experiments, called inside the kernel in virtual time: the same seed gives the same answer."""

import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from netctrl.core.errors import NetctrlError
from netctrl.kernel.boot import work_folder
from netctrl.kernel.command import run_command
from netctrl.kernel.programs import FOLDER

EXPERIMENTS = Path(__file__).resolve().parents[1]
ASKED, ANSWER = "asked.json", "answer.json"
LONGEST_S = 600.0
"""By the host's clock; a run takes a tenth of that."""
_LAST = 2000


def called(function: str, *args: Any, seed: int, wall_limit_s: float = LONGEST_S) -> Any:
    """Answer of `module:function` to arguments; all of them are what JSON can tell.

    Compiled kernels are read from Numba's folder, which is read-only inside: what is called outside first isn't
    compiled there again.
    """
    paths = [str(EXPERIMENTS), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    settings = dict(os.environ) | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
    with work_folder() as folder:
        (folder / ASKED).write_bytes(msgspec.json.encode([function, args]))
        words = [sys.executable, "-m", "linux.virtual"]
        ended = run_command(words, folder, seed=seed, settings=settings, wall_limit_s=wall_limit_s)
        if ended.status:
            raise NetctrlError(f"{function} ended with status {ended.status} inside:\n{ended.stderr[-_LAST:]}")
        return msgspec.json.decode((folder / ANSWER).read_bytes())


def main() -> int:
    """The inside: one call."""
    folder = Path(FOLDER)
    name, args = msgspec.json.decode((folder / ASKED).read_bytes())
    module, _, function = name.partition(":")
    act = getattr(importlib.import_module(module), function)
    gc.collect()
    gc.freeze()  # else each child's first collection copies all pages, which takes the kernel seconds of wall time
    (folder / ANSWER).write_bytes(msgspec.json.encode(act(*args)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
