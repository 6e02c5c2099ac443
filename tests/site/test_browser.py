"""Every page of the built site in Chromium, at a phone's width; and the search."""

from __future__ import annotations

import json
import re

import pytest
from places import ROOT

import netctrl

pytestmark = [pytest.mark.needs("browser", "site")]

PHONE_WIDTH = 390
DESKTOP_WIDTH = 1366
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$(?!\s)[^$\n]+?(?<!\s)\$(?!\d)", re.DOTALL)


def test_no_page_scrolls_sideways(seen) -> None:
    assert {path: page.width for path, page in seen.items() if page.width > PHONE_WIDTH} == {}


CUT_OFF = """() => [...document.querySelectorAll(
  ".md-content pre > code, .md-content .md-typeset__scrollwrap, .md-content .doc-signature code"
)].filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.innerText.slice(0, 80))"""


def test_code_tables_and_signatures_fit_a_desktop(browser, host, site, pages) -> None:
    """Figures' pages and the table of shipped gains are wider; BibTeX stays whole."""
    page = browser.new_page(viewport={"width": DESKTOP_WIDTH, "height": 900})
    found = {}
    for path in (each.relative_to(site).as_posix() for each in pages):
        if not path.startswith(("figures/", "explanation/queue-laws/", "reference/citation/")):
            page.goto(host + path)
            found[path] = page.evaluate(CUT_OFF)
    page.close()
    assert len(found) > 40
    assert {path: cut for path, cut in found.items() if cut} == {}


def test_no_page_complains_or_asks_another_host(seen) -> None:
    assert {path: page.complaints for path, page in seen.items() if page.complaints} == {}
    assert {path: page.elsewhere for path, page in seen.items() if page.elsewhere} == {}


def test_every_formula_is_drawn_in_two_dimensions(seen) -> None:
    assert {path: page.flat for path, page in seen.items() if page.flat} == {}
    assert sum(page.formulas for page in seen.values()) > 700


def test_every_formula_of_a_source_is_on_its_page(seen) -> None:
    counted = {}
    for source in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"`[^`\n]+`", "", FENCE.sub("", source.read_text(encoding="utf-8")))
        path = source.relative_to(ROOT / "docs").with_suffix("")
        page = (path.parent if path.name == "index" else path) / "index.html"
        counted[page.as_posix()] = len(FORMULA.findall(text))
    assert sum(counted.values()) > 700
    assert {path: count for path, count in counted.items() if seen[path].formulas < count} == {}


FRACTION = "<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>"


def test_a_good_page_is_good(seen_of) -> None:
    assert seen_of(f"{FRACTION} <math><msup><mi>x</mi><mn>2</mn></msup></math>") == (PHONE_WIDTH, 2, [], [], [])


@pytest.mark.parametrize(
    ("content", "which"),
    [
        ('<div style="width: 800px">wide</div>', "width"),
        ("<details><pre>" + "wide " * 200 + "</pre></details>", "width"),
        (FRACTION.replace("mfrac", "mrow"), None),
        (FRACTION.replace("mfrac>", "mfrac style='display: flex'>", 1), "flat"),
        ("<math></math>", "flat"),
        ("<script>console.error('x')</script>", "complaints"),
        ("<script>nothing()</script>", "complaints"),
        ('<img src="missing.png">', "complaints"),
        ('<img src="http://127.0.0.1:9/x.png">', "elsewhere"),
    ],
)
def test_what_is_wrong_is_seen(seen_of, content, which) -> None:
    good = {"width": PHONE_WIDTH, "flat": [], "complaints": [], "elsewhere": []}
    found = seen_of(content)._asdict()
    wrong = {name for name, value in good.items() if found[name] != value}
    assert wrong == ({which} if which else set()) | ({"complaints"} if which == "elsewhere" else set()), found


def test_the_index_of_the_search_holds_every_public_name(site) -> None:
    texts = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = " ".join(each["title"] for each in texts)
    assert len(netctrl._PUBLIC) > 50
    assert [name for name in netctrl._PUBLIC if f"netctrl.{name}" not in titles] == []
