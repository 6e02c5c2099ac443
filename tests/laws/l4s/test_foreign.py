"""DualPI2 beside an implementation that is not ours: what Linux 7.2's source makes of 100,000 packets.

net/sched/sch_dualpi2.c was compiled outside of this repository with stand-ins for what it includes, and given the
packets and random numbers of `dual_input`; tests/data/l4s has the digest of its fates. A fate tells in which order the
queues are served, too, as each packet that is taken takes two numbers.
"""

from __future__ import annotations

import hashlib
import json

import pytest
from dual_input import DROPPED, FULL, MARKED, SENT, Floats, Integers, arrivals, fates, words
from places import ROOT

FACTS = json.loads((ROOT / "tests" / "data" / "l4s" / "linux-7.2.json").read_text(encoding="utf-8"))


def draws():
    random = words(FACTS["draws_seed"])

    def both() -> tuple[int, int]:
        word = next(random)
        return word >> 32, word & 0xFFFFFFFF

    return both


@pytest.fixture(scope="module")
def packets():
    return arrivals(FACTS["arrivals_seed"])


@pytest.mark.parametrize("law", [Integers, Floats])
def test_each_of_100_000_packets_has_the_fate_that_linux_gives_it(packets, law):
    found, base = fates(packets, law(), draws())
    counts = {"sent": SENT, "marked": MARKED, "dropped": DROPPED, "full": FULL}
    assert {name: found.count(fate) for name, fate in counts.items()} == {name: FACTS[name] for name in counts}
    assert hashlib.sha256(found.encode()).hexdigest() == FACTS["fates_sha256"]
    assert len(base) == FACTS["updates"]
    if law is Integers:
        assert hashlib.sha256("\n".join(map(str, base)).encode()).hexdigest() == FACTS["bases_sha256"]
    assert max(base) == pytest.approx(FACTS["largest_base"], abs=1e-8 * 2**32)


@pytest.mark.slow
def test_the_packets_see_all_that_the_law_does(packets):
    """From no mark to overload, with all codepoints; a law whose coupling or square is off by a hundredth is seen."""
    assert {packet.codepoint for packet in packets} == {0, 1, 2, 3}
    assert FACTS["largest_base"] > 2**31  # k p' above 1
    assert min(FACTS[name] for name in ("sent", "marked", "dropped", "full")) > 1000
    for name, factor in (("coupling", 1.01), ("alpha", 1.01), ("target", 1.01), ("packet", 0.4)):
        law = Floats()
        setattr(law.state, name, getattr(law.state, name) * factor)
        found, _ = fates(packets, law, draws())
        assert hashlib.sha256(found.encode()).hexdigest() != FACTS["fates_sha256"]
