"""What the search of the built site answers to users' own words: the page that has to come first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.needs("browser", "site")]

SEARCH_MS = 180_000
"""Until the browser has made the index of the whole site, on a busy machine."""
ANSWER_MS = 20_000
"""Until it answers once the index is there."""

FIRST = 4
"""Pages that a search finds, in whose listed sections what was sought has to be."""

OPERATOR = {
    "my queue oscillates": "how-to/my-queue/",
    "queue is always full": "how-to/my-queue/",
    "PIE for 80 users": "how-to/my-queue/",
    "how many flows are 80 users": "how-to/my-queue/",
    "bufferbloat settings for 50 Mbit/s": "how-to/my-queue/",
    "which fq_codel target for a slow link": "how-to/design-queue/",
    "tune RED thresholds": "how-to/design-queue/",
    "DCTCP marking threshold 100G": "how-to/design-queue/",
    "WRED profile for a SONiC switch": "how-to/design-queue/",
    "is cake right for satellite": "how-to/my-queue/",
    "are the queues of my router stable": "how-to/certify/",
    "undo tc changes": "how-to/linux-export/",
    "limit curl to 20 Mbit/s": "how-to/agents/",
    "install without Jupyter": "how-to/install/",
    "send a report to a colleague": "how-to/report/",
    "exit status": "how-to/command-line/",
    "json output": "how-to/command-line/",
    "tab completion in bash": "how-to/command-line/",
}
STUDENT = {
    "import a CSV trace": "how-to/read-capture/",
    "read a pcap": "how-to/read-capture/",
    "BBR against cubic": "how-to/evaluate/",
    "RFC 7928 tests": "how-to/evaluate/",
    "reproduce figure 7 of HFTraC": "figures/hftrac/",
    "simulate TCP under an AQM": "tutorials/notebooks/simulation/",
    "simulate my own topology": "tutorials/your-network/",
    "run my own AQM in ns-3": "how-to/own-law/",
    "test my tcp in a kernel without hardware": "how-to/virtual-kernel/",
    "run a sweep on a cluster": "how-to/cluster/",
    "which symbol is the round-trip time": "reference/nomenclature/",
    "how do I cite netctrl": "reference/citation/",
    "does the fluid agree with ns-3": "how-to/ns3/",
}
CONTROL_ENGINEER = {
    "identify a model from measurements": "how-to/read-capture/",
    "fit a controller to my link": "tutorials/notebooks/connet/",
    "LQR for a network": "explanation/hftrac/",
    "MPC for data centres": "explanation/mpcc/",
    "phase margin with delay": "explanation/margins/",
    "export gains to ns-3": "how-to/ns3/",
    "what does ADMISSIBLE mean": "reference/nomenclature/",
    "stability of several bottlenecks": "how-to/certify/",
    "L4S and TCP Prague": "explanation/queue-laws/",
}
QUESTIONS = OPERATOR | STUDENT | CONTROL_ENGINEER


@pytest.fixture(scope="module")
def ask(browser, host) -> Iterator[Any]:
    """The links that the search finds, best first, in one page whose index is made once."""
    page = browser.new_page()
    page.goto(host)
    box, said = page.locator("input.md-search__input"), page.locator(".md-search-result__meta")

    def typed(words: str, answer: str, timeout: int) -> None:
        box.fill(words)
        box.dispatch_event("keyup")
        said.filter(has_text=re.compile(answer)).wait_for(state="attached", timeout=timeout)

    def found(words: str) -> list[str]:
        # An empty box is greeted once the index is there and the page listens: what is typed before may be lost.
        # Between two questions the greeting tells the second's answer from the first's.
        typed("", "Type to start searching", SEARCH_MS)
        typed(words, r"\d matching document|No matching documents", ANSWER_MS)
        if re.search(r"\d matching", said.text_content() or ""):  # their number is shown before they are
            page.locator("a.md-search-result__link").first.wait_for(state="attached", timeout=ANSWER_MS)
        links = page.eval_on_selector_all("a.md-search-result__link", "all => all.map((each) => each.href)")
        return [re.sub(r"\?h=[^#]*", "", link).removeprefix(host) for link in links]

    yield found
    page.close()


def test_no_number_breaks_the_search(ask) -> None:
    """lunr's set of words takes two that end in other digits for one, unless docs/hooks.py mends it."""
    assert [number for number in range(100) if not ask(f"{number}")] == []


def pages(places: list[str]) -> list[str]:
    """The pages of those places, once each."""
    return list(dict.fromkeys(each.partition("#")[0] for each in places))


@pytest.mark.parametrize(("words", "page"), QUESTIONS.items())
def test_the_page_that_answers_comes_first(ask, words, page) -> None:
    assert pages(ask(words))[0] == page


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("solve_dare", "reference/api/optimisation/#netctrl.synthesis.riccati.dare.solve_dare"),
        ("netctrl.arc", "reference/api/designs/#netctrl.design.arc.design.arc"),
        ("phase_margin_deg", "reference/api/margins/#netctrl.frequency.margins.margins"),
        ("max_threshold", "reference/scenario-files/#redqueue"),
        ("xylophone", None),
        ("jitter", "explanation/connet/"),
    ],
)
def test_the_search_finds(ask, words, place) -> None:
    """A symbol, a field, a key of a file, a word; and of what isn't there nothing."""
    places = ask(words)
    first = pages(places)[:FIRST]
    assert (place in [each for each in places if each.partition("#")[0] in first]) if place else places == []


WALKS = {
    "PIE for 80 users at 50 Mbit/s": ("My queue …", "So 80 users who need"),
    "it oscillates on a path of 200 ms": ("My queue …", "--rtt 200ms"),
    "from a CSV of measurements to a controller": ("from a trace to a closed loop", "netctrl.connet("),
    "BBR and Cubic on a Starlink-like trace": ("evaluate an AQM or a sender", "bbr: 101 Mbit/s"),
    "my own AQM in ns-3": ("Bring your own law", "--compare fluid,packet,ns3"),
    "1,000 points on Dask": ("sweeps on a cluster", "--dask tcp://"),
    "each link of a GraphML failed": ("Your own network in fifteen minutes", "what_if"),
    "curl at 20 Mbit/s": ("pace a sender", "curl"),
    "HFTraC's Fig. 7": ("HFTraC", "Figure 7: load"),
    "in Jupyter": ("Tutorials", "My queue: what users feel", "pie.explore()"),
    "undo what was changed on a router": ("From a Design to a running router", "Restore the earlier queues"),
    "DCTCP's marking threshold": ("better gains", "An ECN marking threshold", "netctrl design ecn"),
}


@pytest.mark.parametrize(("links", "answer"), [(links, answer) for *links, answer in WALKS.values()], ids=WALKS)
def test_a_question_is_answered_in_three_clicks_from_home(browser, host, links, answer) -> None:
    page = browser.new_page(viewport={"width": 1366, "height": 900})
    page.goto(host)
    assert len(links) <= 3
    for link in links:
        page.locator(".md-content a, .md-nav a, .md-tabs a").filter(has_text=link, visible=True).first.click()
        page.wait_for_load_state()
    assert answer in page.locator(".md-content").inner_text()
    page.close()
