"""What every figure does: write its data, picture and provenance, and hold its numbers against the paper's claims."""

import csv
import io
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from netctrl.core.files import write_atomically
from netctrl.model.claim import Claim
from netctrl.model.datasets import claims
from netctrl.model.design.design import provenance
from netctrl.scenario.figures import estimate
from netctrl.scenario.result import Result

ROOT = Path(__file__).resolve().parent.parent
CLAIMS, ASSETS = ROOT / "data" / "claims", ROOT / "docs" / "assets"


class Measured(NamedTuple):
    """A mean over runs with half the width of its 95 % interval."""

    value: float
    half_width: float | None
    runs: int


Computed = dict[str, "float | Measured"]
"""Values of claims, by their names."""

Over = Callable[[pd.DataFrame, Callable[[pd.DataFrame], float]], "float | Measured"]
"""`over_runs` or `pooled`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one script found: the data behind the picture, the picture, a value for each claim it computes, and a table
    for the docs where there is one."""

    name: str
    paper: str
    data: pd.DataFrame
    figure: Figure
    computed: Mapping[str, float | Measured]
    table: pd.DataFrame | None = None


def over_runs(data: pd.DataFrame, value: Callable[[pd.DataFrame], float], run: str = "seed") -> Measured:
    """A value of each run, or seed, by itself; their mean and its interval."""
    return measured([value(part) for _, part in data.groupby(run)])


def pooled(data: pd.DataFrame, value: Callable[[pd.DataFrame], float]) -> float:
    """A value of all runs together, where its interval is not asked for."""
    return value(data)


def measured(values: Sequence[float]) -> Measured:
    """The mean of one value a run, and its interval by Student's t."""
    found = estimate(pd.Series(values, dtype=float).to_numpy())
    return Measured(found.mean, found.half_width, len(values))


def interval(values: Iterable[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval; NaN where there is none."""
    found = estimate(np.asarray(values, dtype=float))
    return found.mean, math.nan if found.half_width is None else found.half_width


def shown(values: Iterable[float], digits: int = 2) -> str:
    """Mean and 95 % interval over runs, for a table."""
    return plus_minus(*interval(values), digits)


def plus_minus(mean: float, half: float, digits: int) -> str:
    """A mean with half of its interval, where there is one."""
    return f"{mean:.{digits}f}" + ("" if math.isnan(half) else f" ± {half:.{digits}f}")


def means(data: pd.DataFrame, by: Sequence[str], columns: Iterable[str], *, sort: bool = False) -> pd.DataFrame:
    """Means by some columns of those that have all values, over `runs` runs; `NAME_half` is half the width of their
    95 % intervals."""
    rows = []
    for point, part in data.groupby(list(by), sort=sort):
        row = dict(zip(by, point, strict=True)) | {"runs": len(part)}
        for name in columns:
            if part[name].notna().all():
                row[name], row[f"{name}_half"] = interval(part[name])
        rows.append(row)
    return pd.DataFrame(rows)


def quotient(one: pd.Series, other: pd.Series) -> Measured:
    """The mean of one over that of the other, a value a run each, with the interval of a ratio estimator."""
    ratio = one.mean() / other.mean()
    return measured((one - ratio * other) / other.mean())._replace(value=float(ratio))


def sampled(result: Result, quantity: str, link: str) -> np.ndarray:
    """A link's samples in the time that the result's figures cover."""
    tick = 1e-6 * result.scenario.interval
    inside = (result.time_s > result.span[0] + tick) & (result.time_s <= result.span[1] + tick)
    return result.series[quantity, link][inside]


def variation(values: np.ndarray) -> float:
    """Standard deviation over the mean; 0 where the mean is 0."""
    return float(values.std() / values.mean()) if values.mean() > 0.0 else 0.0


def used(result: Result, link: str) -> float:
    """Throughput over mean capacity, as the kept studies have it: above 1 where one packet more ends in the time."""
    return result["throughput", link] / float(result.totals["capacity", link].mean())


class Compared(NamedTuple):
    """A claim as it is kept, and as it has been computed now."""

    kept: Claim
    now: Claim

    @property
    def holds(self) -> bool:
        """Whether the value is the kept one, but for its drift, and the verdict the same."""
        kept, now = self.kept.value, self.now.value
        if kept is None or now is None or self.kept.verdict != self.now.verdict or self.kept.runs != self.now.runs:
            return False
        return math.isclose(now, kept, rel_tol=self.kept.drift or 0.0, abs_tol=0.0 if kept else 1e-12)


def compare(outcome: Outcome) -> list[Compared]:
    """Each computed value beside the claim it belongs to."""
    known = {claim.id: claim for claim in claims(outcome.paper)}
    return [Compared(known[name], _now(known[name], value)) for name, value in outcome.computed.items()]


def _now(claim: Claim, value: float | Measured) -> Claim:
    if isinstance(value, Measured):
        return claim.measured(*value)
    return claim.measured(value, None, claim.runs if claim.half_width is None else None)


def store(paper: str, rows: Iterable[Compared]) -> None:
    """Write value, interval and runs of what no longer is as data/claims/ has it there; verdicts follow from them."""
    path = CLAIMS / f"{paper}.csv"
    fallen = {row.kept.id: row.now for row in rows if not row.holds}
    with path.open(newline="", encoding="utf-8") as file:
        kept = list(csv.reader(file))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(_cells(fallen[row[0]]) if row[0] in fallen else row for row in kept)
    write_atomically(path, text.getvalue().encode())


def _cells(claim: Claim) -> list[str]:
    return ["" if each is None else f"{each:.10g}" if isinstance(each, float) else str(each) for each in claim]


def tables(**made: Callable[[], pd.DataFrame]) -> None:
    """A module's command: print the tables that are named, or all; with `--docs` also as docs/assets/NAME.csv."""
    names = [name for name in sys.argv[1:] if name != "--docs"] or list(made)
    for name in names:
        found = made[name.replace("-", "_")]()
        print(found.to_string(index=False), flush=True)
        if "--docs" in sys.argv:
            found.to_csv(ASSETS / f"{name.replace('_', '-')}.csv", index=False)


def verdicts(paper: str, *places: str) -> str:
    """How many of a paper's statements at these places came out how, and of ours: a line for below a picture."""
    found = [claim for claim in claims(paper) if claim.where in places and claim.relation]
    said = []
    for who, sources in (("the paper's statements", ("paper", "words")), ("ours", ("ours",))):
        counted = Counter(claim.verdict for claim in found if claim.source in sources)
        if counted:
            said.append(f"{who}: {', '.join(f'{n} {word}' for word, n in sorted(counted.items()))}")
    return f"Of {'; of '.join(said)}." if said else ""


def write(outcome: Outcome, folder: Path, argv: list[str]) -> list[Compared]:
    """NAME.csv, NAME.png and NAME.json in `folder`; returns the comparison that the JSON holds."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = compare(outcome)
    made = provenance(argv=argv, libraries=("numpy", "scipy", "pandas", "matplotlib"))
    picture = io.BytesIO()
    outcome.figure.savefig(picture, format="png", dpi=130)
    compared = [_told(row) for row in rows]
    record = {"name": outcome.name, "claims": compared, "provenance": made}
    write_atomically(folder / f"{outcome.name}.csv", outcome.data.to_csv(index=False).encode())
    write_atomically(folder / f"{outcome.name}.png", picture.getvalue())
    write_atomically(folder / f"{outcome.name}.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    return rows


def _told(row: Compared) -> dict[str, object]:
    now = {"computed": row.now.value, "computed_half_width": row.now.half_width, "computed_verdict": row.now.verdict}
    return {**row.kept._asdict(), "verdict": row.kept.verdict, **now, "holds": row.holds}
