"""What every figure does: write its data, picture and provenance, and hold its numbers against the paper's claims."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pandas as pd
from matplotlib.figure import Figure

from netctrl.datasets import claims
from netctrl.model.artifact import provenance
from netctrl.model.files import write_atomically


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one script found: the data behind the picture, the picture, a value for each claim it computes, and a table
    for the docs where there is one."""

    name: str
    paper: str
    data: pd.DataFrame
    figure: Figure
    computed: dict[str, float]
    table: pd.DataFrame | None = None


def compare(outcome: Outcome) -> list[dict[str, object]]:
    """Each computed value beside the claim it belongs to; `holds` is False where a verdict no longer stands."""
    known = {claim.id: claim for claim in claims(outcome.paper)}
    rows = []
    for name, value in outcome.computed.items():
        claim = known[name]
        holds = claim.value is not None and math.isclose(
            value, claim.value, rel_tol=claim.tolerance or 0.0, abs_tol=0.0 if claim.value else 1e-12
        )
        rows.append({**claim._asdict(), "computed": value, "holds": holds})
    return rows


def verdicts(paper: str, *places: str) -> str:
    """What data/claims says of some places of a paper, a line each: the text below a picture."""
    found = [claim for claim in claims(paper) if claim.where in places]
    return "\n".join(f"{claim.where}: {claim.claim}: {claim.verdict}." for claim in found)


def write(outcome: Outcome, folder: Path, argv: list[str]) -> list[dict[str, object]]:
    """NAME.csv, NAME.png and NAME.json in `folder`; returns the comparison that the JSON holds."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = compare(outcome)
    made = provenance(argv=argv, libraries=("numpy", "scipy", "pandas", "matplotlib"))
    picture = io.BytesIO()
    outcome.figure.savefig(picture, format="png", dpi=130)
    record = {"name": outcome.name, "claims": rows, "provenance": made}
    write_atomically(folder / f"{outcome.name}.csv", outcome.data.to_csv(index=False).encode())
    write_atomically(folder / f"{outcome.name}.png", picture.getvalue())
    write_atomically(folder / f"{outcome.name}.json", msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    return rows
