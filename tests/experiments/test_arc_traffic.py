"""Studies of the ARC paper's traffic: which schemes run in the fluid."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
from places import EXPERIMENTS


@pytest.fixture
def traffic(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("arc.traffic")


def test_schemes_that_the_fluid_lacks_are_left_to_ns3(traffic):
    """Ten flows backward overflow one of Fig. 6's two drop-tail links: a mean field hasn't their losses."""
    study = traffic.ROUND_TRIP
    chosen = {name: study.schemes[name] for name in (traffic.ARC, traffic.DROP_TAIL)}
    brief = replace(study, scenario=traffic.shortened(study.scenario, 0.01, 0.1), schemes=chosen, seeds=(1,))
    assert list(traffic.fluid(brief)) == [traffic.ARC]


def test_fifty_flows_over_each_link_are_enough_for_drop_tail(traffic):
    lacks = {
        study.name: traffic.supports(traffic.under(study.scenario, study.schemes[traffic.DROP_TAIL]))["fluid"]
        for study in traffic.STUDIES.values()
    }
    assert {name for name, lack in lacks.items() if lack is not None} == {"arc-fig06", "arc-fig11"}
    assert "links.backward.queue" in lacks["arc-fig06"] and "50 of Reno" in lacks["arc-fig06"]
