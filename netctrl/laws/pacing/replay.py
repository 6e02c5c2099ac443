"""Replay of a pacing law over measured RTTs: the file, and the law's predictions and rates."""

from __future__ import annotations

import csv
import io
import os
from typing import NamedTuple

import msgspec
import numpy as np

from netctrl.core.errors import FileError
from netctrl.core.files import read_bounded
from netctrl.laws.pacing.pacing import EVENTS, PacingRun, pace_trace
from netctrl.model.law import PacingLaw

_MAX_BYTES = 2**28
_COLUMNS = ("time_s", "rtt_s", "delivered_bytes", "in_flight_bytes", "lost_bytes", "marked_bytes")
_SHOWN = 10


class RttTrace(NamedTuple):
    """Measured RTTs, T of them, in order of time."""

    time_s: np.ndarray
    rtt_s: np.ndarray
    delivered_bytes: np.ndarray | None
    """Acknowledged since the flow began."""
    in_flight_bytes: np.ndarray | None
    """Sent and not yet acknowledged or lost."""
    lost_bytes: np.ndarray | None
    """Since the flow began."""
    marked_bytes: np.ndarray | None
    """Of those acknowledged, the ones with marks."""


class PacingReplay(NamedTuple):
    """Replay of a law over a trace."""

    trace: RttTrace
    run: PacingRun
    fit: float | None
    """Fit 100 (1 − var(ℓ − ℓ̂)/var ℓ) of the samples used and predicted, in %; None for constant RTTs."""

    def to_json(self) -> str:
        """One JSON object: fit, events, and lists of times, RTTs, predictions (null where there is none) and rates of
        the samples that were used."""
        used = self.run.used
        predictions = [None if np.isnan(value) else value for value in self.run.predictions[used].tolist()]
        found = {
            "samples": len(used),
            "used": int(used.sum()),
            "fit_percent": self.fit,
            "events": self.run.events,
            "time_s": self.trace.time_s[used].tolist(),
            "rtt_s": self.trace.rtt_s[used].tolist(),
            "predicted_rtt_s": predictions,
            "rate_bit_per_s": self.run.rates[used].tolist(),
        }
        return msgspec.json.encode(found).decode() + "\n"

    def table(self) -> str:
        """The same for people: some ten of the samples that were used."""
        used = np.flatnonzero(self.run.used)
        fit = "RTTs don't move" if self.fit is None else f"{self.fit:.4g} %"
        events = ", ".join(f"{name} {self.run.events[name]}" for name in EVENTS)
        lines = [f"  replay    {len(self.run.used)} samples, {len(used)} used; fit {fit}; {events}", ""]
        lines.append(f"  {'time s':>12}{'RTT ms':>12}{'predicted ms':>14}{'rate Mbit/s':>14}")
        for t in used[np.unique(np.linspace(0, len(used) - 1, _SHOWN).astype(int))] if len(used) else ():
            guess, rate = self.run.predictions[t], self.run.rates[t]
            shown = "" if np.isnan(guess) else f"{1e3 * guess:.5g}"
            lines.append(
                f"  {self.trace.time_s[t]:>12.6g}{1e3 * self.trace.rtt_s[t]:>12.5g}{shown:>14}{rate / 1e6:>14.6g}"
            )
        return "\n".join(lines) + "\n"


def replay(law: PacingLaw, trace: RttTrace) -> PacingReplay:
    """Replay a law over a trace, from its start; its rates have no effect on the measurements."""
    run = pace_trace(
        law,
        trace.time_s,
        trace.rtt_s,
        delivered=trace.delivered_bytes,
        in_flight=trace.in_flight_bytes,
        lost=trace.lost_bytes,
        marked=trace.marked_bytes,
    )
    seen = run.used & ~np.isnan(run.predictions)
    spread = float(trace.rtt_s[seen].var()) if seen.any() else 0.0
    left = float((trace.rtt_s - run.predictions)[seen].var()) if seen.any() else 0.0
    return PacingReplay(trace, run, 100.0 * (1.0 - left / spread) if spread > 0.0 else None)


def read_replay(path: str | os.PathLike[str], *, delivered: bool = False) -> RttTrace:
    """Read measured RTTs from a CSV with the columns `time_s` and `rtt_s`.

    The columns `delivered_bytes`, `in_flight_bytes`, `lost_bytes` and `marked_bytes` are optional; others are ignored.

    Raises
    ------
    FileError
        The file can't be read, has no samples, or lacks a column (`delivered`: that too); a value isn't a number above
        0 (rtt_s), of at least 0 (bytes), or of at least the one before (all but rtt_s and in_flight_bytes). It names
        the line.
    """
    content = read_bounded(path, _MAX_BYTES, f"is too large for a trace (at most {_MAX_BYTES // 2**20} MiB)")
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(path, f"is not a CSV file: {error}") from None
    header = [name.strip() for name in rows[0]] if rows else []
    for name in _COLUMNS[: 3 if delivered else 2]:
        if header.count(name) != 1:
            raise FileError(path, f"line 1: got {', '.join(header) or 'nothing'}, takes a header with {name}, once")
    lines = [(number, row) for number, row in enumerate(rows[1:], start=2) if any(field.strip() for field in row)]
    if not lines:
        raise FileError(path, "has no samples below its header")
    columns = {name: _column(path, name, header.index(name), lines) for name in _COLUMNS if header.count(name) == 1}
    return RttTrace(columns["time_s"], columns["rtt_s"], *(columns.get(name) for name in _COLUMNS[2:]))


def _column(path: str | os.PathLike[str], name: str, place: int, lines: list[tuple[int, list[str]]]) -> np.ndarray:
    found, before = np.empty(len(lines)), -np.inf
    for at, (number, row) in enumerate(lines):
        text = row[place].strip() if place < len(row) else ""
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        takes = _wrong(name, value, before)
        if takes is not None:
            raise FileError(path, f"line {number}, {name}: got {text or 'nothing'}, takes {takes}")
        found[at] = before = value
    return found


def _wrong(name: str, value: float, before: float) -> str | None:
    """Values that are accepted in place of a wrong one; None for a valid value."""
    if not np.isfinite(value):
        return "a number"
    if name == "rtt_s" and value <= 0.0:
        return "a time above 0, in seconds"
    if name not in ("rtt_s", "in_flight_bytes") and value < before:
        return f"at least {before:.12g}, that of the line before"
    if name.endswith("_bytes") and value < 0.0:
        return "bytes of at least 0"
    return None
