"""Files of a study that is kept in data/results/: a table of its runs, and a record of what made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from netctrl.model.io.files import write_atomically

RESULTS = Path(__file__).resolve().parents[1] / "data" / "results"


def read_runs(path: Path, **options: Any) -> pd.DataFrame | None:
    """Table of kept runs; None where there is no file. `options` are those of `pandas.read_csv`."""
    return pd.read_csv(path, **options) if path.exists() else None


def with_runs(data: pd.DataFrame | None, fresh: pd.DataFrame) -> pd.DataFrame:
    """Kept runs and fresh ones behind them."""
    return fresh if data is None else pd.concat([data, fresh], ignore_index=True)


def kernel_used(kernel: Any) -> dict[str, Any]:
    """What a record says of a kernel."""
    return {"version": kernel.version, "source": kernel.source, "sha256": kernel.sha256}


def write_runs(path: Path, data: pd.DataFrame, digits: int = 6) -> None:
    """Write a table of runs with so many significant digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data.to_csv(index=False, float_format=f"%.{digits}g").encode())


def write_record(path: Path, record: Any) -> None:
    """Write a record as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")
