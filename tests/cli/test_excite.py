"""From `netctrl excite` to a certificate: levels, a trace with a curve, a design that uses it."""

import json

import numpy as np
import pandas as pd
import pytest

from netctrl.__main__ import main


@pytest.fixture
def trace(tmp_path):
    """A table of levels with the delay of a queue of 100 Mbit/s beside them."""
    assert main(["excite", "--range", "5Mbit:85Mbit", "-o", str(tmp_path / "levels.csv")]) == 0
    table = pd.read_csv(tmp_path / "levels.csv")
    delay = 0.36 + 5.0 / (100.0 - table["R"])
    table["delay"] = delay * (1.0 + 0.05 * np.random.default_rng(2).standard_normal(len(table)))
    table.to_csv(tmp_path / "trace.csv", index=False)
    return tmp_path / "trace.csv"


def test_a_curve_is_identified_and_used(trace, capsys):
    model = str(trace.with_name("model.json"))
    line = ["identify", str(trace), "--inputs", "R", "--outputs", "delay", "--curve", "-o", model]
    assert main(line) == 0
    assert "curve: convex, R 5." in capsys.readouterr().out
    assert main(["design", "connet", "--model", model, "--json"]) == 0
    held = json.loads(capsys.readouterr().out)["certificate"]["slopes"]["held"]
    assert 0.41 < held["references"][0] < held["references"][1] < 0.36 + 5.0 / 15.0
    assert main(["design", "connet", "--model", model, "--reference", "delay=2"]) == 3
    assert "for which it is proved" in capsys.readouterr().err


def test_two_levels_show_no_curve_and_what_does_is_said(trace, capsys):
    assert main(["excite", "--range", "5Mbit:85Mbit", "--levels", "two", "--samples", "200"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "time_s,R"
    assert {row.split(",")[1] for row in rows[1:]} == {"5", "85"}
    trace.write_text("\n".join(["time_s,R,delay", *(f"{row},{row.split(',')[1]}" for row in rows[1:])]))
    assert main(["identify", str(trace), "--inputs", "R", "--outputs", "delay", "--curve"]) == 2
    assert "2 can't show a curve; record 600 samples at levels of `netctrl excite`" in capsys.readouterr().err
    for option in (["--held-out", "0.3"], ["--refine", "yes"], ["--no-feedthrough"], ["--focus", "both"]):
        assert main(["identify", str(trace), "--inputs", "R", "--outputs", "delay", "--curve", *option]) == 2
        assert f"{option[0]}: got" in capsys.readouterr().err
