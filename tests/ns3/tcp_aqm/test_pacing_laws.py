"""The text of exported bottlenecks, and pacing laws in C++ by themselves. After a wanted change, store the text anew:

python tests/ns3/tcp_aqm/test_pacing_laws.py
"""

from __future__ import annotations

from math import inf, nan

import msgspec
import numpy as np
import pytest
from ns3_support import assert_one_program, assert_stored, compiled_parts, origin, store

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.pacing.pacing import EVENTS, pace_trace
from netctrl.laws.rate.cap import CapSender
from netctrl.model.law import OwnRatePacer, PacingLaw
from netctrl.ns3.tcp_aqm.render import render
from netctrl.ns3.tcp_aqm.senders import pacer_records
from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.design import design_bottleneck, with_pacer
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.traffic import draw_flows

GENERATED = {
    "pacing": ("scenario.txt",),
    "pacing-peers": ("netctrl-pacing-laws.h", "netctrl-tcp-laws.h", "netctrl-tcp-windows.h", "scenario.txt"),
}


def peers(**fields) -> Scenario:
    """All that a scenario may have."""
    given = {
        "name": 'peers */ "2"',
        "capacity": "10Mbit",
        "buffer": "50kB",
        "queue": CodelQueue(),
        "rtt": "40ms",
        "flows": (
            Flow(id="paced", sender="paced"),
            Flow(id="cap", rtt="80ms", start="1s", stop="9s", sender=CapSender(rate="4Mbit", window="htcp")),
            *(Flow(id=kind, sender=kind, start=2.0) for kind in ("htcp", "cubic", "bbr", "reno")),
        ),
        "cross": "100kbit",
        "start_spread": "20ms",
        "duration": "10s",
        "warmup": "3s",
        "seed": 3,
    }
    return bottleneck(**(given | fields))


def rendered(scenario: Scenario, **options) -> dict[str, str]:
    return render(scenario, draw_flows(scenario, merged=False), **({"provenance": origin()} | options))


def cases() -> dict[str, dict[str, str]]:
    design = netctrl.pacing(mode="own-rate", rtt_s=0.02, bottleneck_bit_per_s=1e8)
    design = msgspec.structs.replace(design, provenance=origin())
    paper = netctrl.pacing(max_rate_bit_per_s=1e7).law
    return {
        "pacing": rendered(with_pacer(design_bottleneck(1e8, 0.02, 1500.0), design.law), design=design),
        "pacing-peers": rendered(with_pacer(peers(), paper), provenance=origin("netctrl", 'a "quote" */')),
    }


@pytest.mark.parametrize("case", GENERATED)
def test_generated_text_is_what_is_stored(case):
    assert_stored(case, cases()[case], GENERATED[case])


def test_one_program_runs_every_scenario():
    assert_one_program(cases())


# --- what can't be expressed -----------------------------------------------------------------------------------------

OWN = netctrl.pacing(mode="own-rate").law


@pytest.mark.parametrize(
    ("fields", "law", "field", "says"),
    [
        ({"packet_size": 80.0}, OWN, "packet_size", "whole number of bytes from 100"),
        ({"packet_size": 1000.5}, OWN, "packet_size", "whole number of bytes from 100"),
        ({"capacity": 1e5 + 0.5, "cross": 0.0}, OWN, "links.bottleneck.capacity", "whole number of bit/s"),
        ({"capacity": 1e12}, OWN, "links.bottleneck.capacity", "counts in ns"),
        ({"buffer": 100.0}, OWN, "links.bottleneck.buffer", "a packet"),
        ({"buffer": 5e9}, OWN, "links.bottleneck.buffer", "a packet"),
        ({"queue": FastArcQueue()}, OWN, "links.bottleneck.queue.kind", "stock ns-3"),
        ({"capacity": "10Gbit", "duration": 1e5}, OWN, "duration", "a sample of its round trip"),
        ({}, None, "sender", "a Design of pacing"),
        ({"flows": (Flow(sender="bbr"),)}, OWN, "scenario", "of sender paced"),
        ({}, netctrl.pacing(guarded=False).law, "least_rate_bit_per_s", "leave out --literal"),
    ],
    ids=lambda each: str(each) if isinstance(each, str | dict) else "",
)
def test_what_ns3_cannot_express_is_named(fields, law, field, says):
    with pytest.raises(InvalidValue, match=says) as refused:
        made = peers(**fields)
        rendered(made if law is None else with_pacer(made, law))
    assert refused.value.argument == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"flows": ()}, "flows"),
        ({"cross": "10Mbit"}, "cross"),
        ({"cross": -1.0}, "cross"),
        ({"warmup": "10s"}, "warmup"),
        ({"interval": "11s"}, "interval"),
        ({"flows": (Flow(sender="bbr", start=10.0),)}, "flows.bbr.start"),
    ],
    ids=str,
)
def test_a_scenario_that_makes_no_sense_is_refused(fields, field):
    with pytest.raises(InvalidValue) as refused:
        peers(**fields)
    assert refused.value.argument == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sender": "westwood"}, "sender"),
        ({"sender": "cap"}, "sender"),
        ({"sender": {"kind": "cap", "rate": 0.0}}, "sender.rate"),
        ({"sender": "bbr", "start": 2.0, "stop": 1.0}, "stop"),
    ],
    ids=str,
)
def test_a_flow_that_makes_no_sense_is_refused(fields, field):
    with pytest.raises(InvalidValue) as refused:
        Flow(**fields)
    assert refused.value.argument == field


def test_a_file_is_read_strictly(tmp_path):
    path = tmp_path / "link.toml"
    path.write_text(
        'schema = "netctrl.scenario/3"\nname = "bottleneck"\nduration = "60s"\nwarmup = "10s"\n'
        'packet_size = "1500B"\nflows = [{ id = "flow0", sender = "bbr" }]\n'
        '[network]\nkind = "bottleneck"\ncapacity = "20Mbit"\ncross = "1Mbit"\nqueue = { kind = "arc" }\n'
    )
    found = netctrl.read(path)
    line = Bottleneck(capacity=2e7, cross=1e6, queue=ArcQueue())
    assert found.links == line.links()
    flow, cross = line.flows((Flow(id="flow0", sender="bbr"),), 60.0)
    assert found.flows == tuple(msgspec.structs.replace(each, path=("bottleneck",)) for each in (flow, cross))
    assert found.flows[0].rtt == (0.02, 0.02)
    assert found.interval == 0.1
    path.write_text(path.read_text().replace("cross", "speed"))
    with pytest.raises(FileError, match="speed"):
        netctrl.read(path)


# --- the laws, compiled ----------------------------------------------------------------------------------------------

LAWS: dict[str, PacingLaw] = {
    "paper": netctrl.pacing(max_rate_bit_per_s=1e8).law,
    "paper, xi = 1, p = 2, q = 3": netctrl.pacing(max_rate_bit_per_s=4e7, xi=1.0, past_rtts=2, past_rates=3).law,
    "paper, SGD": netctrl.pacing(max_rate_bit_per_s=1e8, estimator="sgd", step=0.2).law,
    "literal": netctrl.pacing(max_rate_bit_per_s=1e8, guarded=False).law,
    "own rate": netctrl.pacing(mode="own-rate").law,
    "own rate, at most 30 Mbit/s": netctrl.pacing(mode="own-rate", max_rate_bit_per_s=3e7).law,
    "own rate, L4S": OwnRatePacer(l4s=True),
}

PARTS = r"""
#include "netctrl-pacers.h"

#include <cstdio>
#include <string>

template <class Pacer, class Step>
static void Replay(Pacer pacer, Step step) {
    double time, rtt, delivered, inFlight, lost, marked;
    while (std::scanf("%lf %lf %lf %lf %lf %lf", &time, &rtt, &delivered, &inFlight, &lost, &marked) == 6) {
        const double rate = step(pacer, time, rtt, delivered, inFlight, lost, marked);
        std::printf("%.17g\n", rate == pacer.state.rate ? rate : -1.0);
    }
    for (const int64_t count : netctrl::EventsOf(pacer.state)) std::printf("%lld\n", static_cast<long long>(count));
}

static void Run(const netctrl::Pacer& law, bool literal) {
    if (const auto* own = std::get_if<netctrl::OwnRatePacer>(&law)) {
        return Replay(*own, [](auto& pacer, auto... seen) {
            return netctrl::OwnRateLawStep(pacer.state, pacer.parameters, seen...);
        });
    }
    auto arx = std::get<netctrl::ArxPacer>(law);
    if (literal) arx.parameters.guarded = arx.parameters.minRate = 0.0;
    Replay(arx, [](auto& pacer, double time, double rtt, auto...) {
        return netctrl::ArxPacingStep(pacer.state, pacer.parameters, pacer.memory, time, rtt);
    });
}

int main(int, char** argv) {
    for (netctrl::Record& record : netctrl::ReadRecords("laws.txt")) {
        if (record.id == argv[1]) Run(netctrl::TakePacer(record), argv[2] == std::string("literal"));
        else record.TakeRest();
        record.End();
    }
}
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """What the law of each export answers to samples on stdin."""
    folder = tmp_path_factory.mktemp("parts")
    exported = [name for name in LAWS if name != "literal"]  # which is refused, but C++ has it
    (folder / "laws.txt").write_text("\n".join(pacer_records(LAWS[name] for name in exported)))
    program = compiled_parts(folder, PARTS, cases()["pacing"], ("pacing-laws", "pacers", "records"))

    def ask(which: str, samples: np.ndarray) -> tuple[np.ndarray, list[int]]:
        law = f"law{1 + exported.index('paper' if which == 'literal' else which)}"
        numbers = np.ravel(program([law, which], samples.ravel().tolist()))
        return numbers[: len(samples)], numbers[len(samples) :].astype(int).tolist()

    return ask


def walk(rng: np.random.Generator, seconds: float = 25.0, gone: float = 18.0) -> np.ndarray:
    """(T, 6) samples of a link that is sometimes somebody else's: RTT from 20 ms, queues that come and go, losses, and
    marks."""
    steps = np.maximum(rng.exponential(2e-3, 20_000), 1e-7)
    time = np.cumsum(steps)
    time = time[time < seconds]
    T = len(time)
    queue = np.clip(np.cumsum(rng.normal(0.0, 4e-4, T)), 0.0, 0.02) + 0.01 * ((time > 8.0) & (time < gone))
    rtt = 0.02 + queue + rng.exponential(1e-4, T)
    capacity = np.where(time > 12.0, 2e7, 5e7) * rng.uniform(0.6, 1.0, T)
    delivered = np.cumsum(capacity / 8.0 * np.diff(time, prepend=0.0))
    flight = capacity / 8.0 * rtt * rng.uniform(0.8, 1.2, T)
    lost = 1500.0 * np.cumsum(rng.random(T) < 2e-3)
    marked = 1500.0 * np.cumsum(rng.random(T) < 2e-3 * (time < 6.0))
    samples = np.column_stack([time, rtt, delivered, flight, lost, marked])
    samples[rng.random(T) < 0.1, 3] = nan
    bad = rng.integers(1, T, 60)
    samples[bad[:10], 1], samples[bad[10:20], 1], samples[bad[20:30], 1] = 0.0, nan, inf
    samples[bad[30:40], 0], samples[bad[40:50], 2] = -1.0, nan
    samples[bad[50:], 2] = 0.0
    return samples


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", LAWS)
def test_the_law_in_cpp_is_that_of_the_runtime(parts, name, seed):
    samples = walk(np.random.default_rng(seed), gone=22.0 if name.startswith("own rate") else 18.0)
    time, rtt, *others = samples.T
    seen = dict(zip(("delivered", "in_flight", "lost", "marked"), others, strict=True))
    expected = pace_trace(LAWS[name], time, rtt, **seen)
    rates, events = parts(name, samples)
    np.testing.assert_array_equal(rates, expected.rates)
    assert events == [expected.events[each] for each in EVENTS]
    assert len(np.unique(expected.rates)) > 20
    assert expected.events["bad_rtt"] >= 28
    assert expected.events["bad_time"] >= 8


def test_the_walk_goes_through_competition():
    """The test above sees a law compete, and a loss cut its window."""
    from netctrl.laws.pacing.pacing import pacing_values

    time, rtt, delivered, flight, lost, _ = walk(np.random.default_rng(1), 21.0, 22.0).T
    law = LAWS["own rate"]
    values = pacing_values(law, pace_trace(law, time, rtt, delivered=delivered, in_flight=flight, lost=lost).state)
    assert values["competing"] == 1.0
    assert values["cut_s"] > 12.0


if __name__ == "__main__":
    store(cases(), GENERATED)
