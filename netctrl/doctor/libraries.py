"""Checks of Python, of netctrl with its data, and of libraries; essential ones are imported, others only looked up."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from netctrl.doctor.check import Check, checked

__all__ = ["libraries"]

_CORE = ("numpy", "scipy", "numba", "msgspec", "cyclopts")
_OTHERS = {
    "matplotlib": ("figures, --plot", "matplotlib"),
    "pandas": ("tables, sweeps", "pandas"),
    "pyarrow": ("Parquet files", "pyarrow"),
    "networkx": ("networkx graphs, figures of networks", "networkx"),
    "joblib": ("several processes, --n-jobs", "joblib"),
    "threadpoolctl": ("the synthesis of HFTraC", "threadpoolctl"),
    "tqdm": ("progress bars", "tqdm"),
    "control": ("python-control's systems", "control"),
    "cvxpy": ("the solver clarabel", "cvxpy"),
    "osqp": ("the solver osqp", "osqp"),
    "daqp": ("the solver daqp", "daqp"),
    "sippy-unipi": ("identification methods sippy-*", "sippy-unipi"),
    "casadi": ("the solver qpoases", "'netctrl[mpc]'"),
    "distributed": ("runs on a Dask cluster, --dask", "'netctrl[dask]'"),
    "jupyter-core": ("notebooks", "'netctrl[notebooks]'"),
}
_MIN_PYTHON = (3, 11)


def libraries() -> Iterator[Check]:
    """All of these checks."""
    yield _essential(
        "python", sys.version_info >= _MIN_PYTHON, platform.python_version(), "install Python 3.11 or later"
    )
    yield _netctrl()
    for name in _CORE:
        yield _imported(name)
    for name, (needed_for, package) in _OTHERS.items():
        found = _version(name)
        remedy = f"pip install {package}"
        yield checked("libraries", name, found is not None, found or "not installed", needed_for, remedy)


def _netctrl() -> Check:
    from netctrl import __version__, datasets

    place = str(Path(datasets.__file__).parent)
    there = bool(datasets.scenarios())
    found = f"{__version__}, {place}" + ("" if there else ": its data is missing")
    return _essential("netctrl", there, found, "pip install --force-reinstall netctrl")


def _imported(name: str) -> Check:
    try:
        importlib.import_module(name)
        found, works = _version(name) or "", True
    except Exception as error:  # whatever a broken installation raises
        found, works = f"cannot be imported: {' '.join(str(error).split()) or type(error).__name__}", False
    return _essential(name, works, found, f"pip install --force-reinstall {name}")


def _essential(name: str, works: bool, found: str, remedy: str) -> Check:
    return checked("libraries", name, works, found, "everything", remedy, essential=True)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
