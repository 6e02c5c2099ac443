"""Published defaults: numbers are those of their sources, and the documentation's table is what they give."""

from __future__ import annotations

import csv
import importlib

import pytest
from places import EXPERIMENTS, ROOT

from netctrl.certificates.shipped import SHIPPED, certify_shipped
from netctrl.core.errors import InvalidValue, Status
from netctrl.model.io.display import page

# As each source says it: gains [1/s], target and time between updates [s].
GAINS = {
    "linux-pie": (2 / 16, 20 / 16, 0.015, 0.015),
    "linux-fq_pie": (2 / 16, 20 / 16, 0.015, 0.015),
    "linux-dualpi2": (41 / 256, 819 / 256, 0.015, 0.016),
    "rfc8033": (0.125, 1.25, 0.015, 0.015),
    "rfc8034": (0.25, 2.5, 0.010, 0.016),
    "rfc9332": (0.15, 3.0, 0.015, 0.015),
    "pi2-paper": (0.3125, 3.125, 0.020, 0.032),
}


def stored() -> dict[str, dict[str, str]]:
    with (ROOT / "docs" / "assets" / "shipped.csv").open(encoding="utf-8", newline="") as lines:
        return {row["name"].strip("`"): row for row in csv.DictReader(lines)}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_the_table_of_the_documentation_is_what_a_default_gives(name: str, monkeypatch) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    shipped = importlib.import_module("engines.shipped")
    default = SHIPPED[name]
    assert shipped.row(default, shipped.certificate(name), shipped.with_linux(default)) == stored()[name]


def test_the_table_has_every_default() -> None:
    assert list(stored()) == list(SHIPPED)


@pytest.mark.parametrize("name", GAINS)
def test_gains_are_those_of_the_source(name: str) -> None:
    found = certify_shipped([name], rtt_s=0.02, window_packets=10.0).queues[0].certificate
    given = found.law.parameters
    assert tuple(given[key] for key in ("alpha", "beta", "target_s", "tupdate_s")) == pytest.approx(
        GAINS[name], rel=2e-3
    )


def test_a_network_of_ones_own_takes_the_place_of_all_boxes() -> None:
    found = certify_shipped(["rfc8033", "red-1997"], rtt_s=0.02, flows=10.0, capacity_bit_per_s=20e6)
    assert [each.certificate is not None for each in found.queues] == [True, True]
    assert all(each.certificate.inputs.rtt_s == (0.02, 0.02) for each in found.queues if each.certificate)
    assert found.queues[0].certificate.certificate.status is Status.ADMISSIBLE
    windows = certify_shipped(["red-1997"], rtt_s=0.02, window_packets=10.0).queues[0]
    assert (windows.certificate, "in bytes" in windows.reason) == (None, True)


def test_an_unknown_default_is_named() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'rfc8034'"):
        certify_shipped(["rfc834"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linux-fq_pie", "rfc8034", "dctcp-1g"])
def test_every_law_has_a_report(name: str) -> None:
    found = certify_shipped([name]).queues[0].certificate
    assert found is not None
    assert SHIPPED[name].law in page(found).decode()
