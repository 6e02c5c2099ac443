"""Pages in a real browser, on a desktop and on a phone: values under the pointer, a finger and the keys, nothing that
scrolls sideways or is refused, words that can be read in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from report_support import a_design, a_sweep, coarse_map, two_flows

import netctrl
from netctrl.model.io.display import page
from netctrl.plotting.pages import designs
from netctrl.plotting.pages.sweeps import sweep_page

pytestmark = pytest.mark.needs("browser")

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
NAMES = ("arc", "hftrac", "connet", "mpcc", "pacing")
ALL = (*NAMES, "comparison", "evaluation", "simulation", "sweep")
LEAST_CONTRAST = 4.5
"""WCAG 2.1, level AA."""

CONTRASTS = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return parts(colour)[3] === 0 && element.parentElement ? behind(element.parentElement) : colour;
  };
  const words = [...document.querySelectorAll("h1, h2, p, li, th, td, caption, figcaption, code, summary, svg text")];
  return words.filter((each) => each.textContent.trim() && each.getClientRects().length).map((each) => {
    const style = getComputedStyle(each);
    const ink = each.closest("svg") ? style.fill : style.color;
    const [one, other] = [light(ink), light(behind(each))].sort((a, b) => b - a);
    return [(one + 0.05) / (other + 0.05), each.tagName, each.textContent.slice(0, 40)];
  });
}"""


class Shown(NamedTuple):
    """A page in a browser, and what the browser complained of."""

    page: Any
    complaints: list[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All pages as files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(designs, "arc_stability_map", coarse_map)
        found = tmp_path_factory.mktemp("pages")
        spec, scenario = a_sweep("front"), two_flows()
        contents = {name: page(a_design(name)) for name in NAMES}
        contents["comparison"] = page(netctrl.compare(scenario, ["packet", "fluid"], seeds=2))
        contents["evaluation"] = page(netctrl.evaluate("arc", only=["7.2", "8.2.2", "8.3"], seeds=2, quick=True))
        contents["simulation"] = page(netctrl.simulate(scenario, "packet"))
        contents["sweep"] = sweep_page(spec, netctrl.sweep(spec)).content()
        for name, content in contents.items():
            (found / f"{name}.html").write_bytes(content)
        yield found


@pytest.fixture
def show(browser: Any, folder: Path) -> Iterator[Callable[..., Shown]]:
    """Open a page on a screen; what it asks for beyond its file, and what is refused, is kept."""
    contexts = []

    def opened(name: str, screen: dict[str, int] = DESKTOP, **options: Any) -> Shown:
        context = browser.new_context(viewport=screen, **options)
        contexts.append(context)
        shown = Shown(context.new_page(), [])
        shown.page.on("console", lambda message: shown.complaints.append(message.text))
        shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.page.on("dialog", lambda dialog: shown.complaints.append(f"dialog {dialog.message}") or dialog.dismiss())
        shown.page.goto((folder / f"{name}.html").as_uri())
        return shown

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ALL)
def test_nothing_scrolls_sideways_and_nothing_is_refused(show, name: str, screen: dict[str, int]) -> None:
    shown = show(name, screen)
    for fold in shown.page.query_selector_all("summary"):
        fold.click()
    assert shown.page.evaluate("document.scrollingElement.scrollWidth") == screen["width"]
    assert shown.page.evaluate("[...document.querySelectorAll('svg')].every((each) => each.getBBox().width > 100)")
    assert shown.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ALL)
def test_words_can_be_read(show, name: str, scheme: str) -> None:
    found = show(name, color_scheme=scheme).page.evaluate(CONTRASTS)
    assert len(found) > 30
    assert [each for each in found if each[0] < LEAST_CONTRAST] == []


def test_dark_is_dark(show) -> None:
    colours = [
        show("mpcc", color_scheme=scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(22, 25, 29)"]


def test_the_pointer_reads_the_map_where_it_is(show) -> None:
    """Against the cell that a place of the drawn map is in."""
    shown = show("arc")
    shown.page.locator(".hover svg").scroll_into_view_if_needed()
    box = shown.page.locator(".hover svg image").bounding_box()
    values = shown.page.evaluate("JSON.parse(document.querySelector('.hover script').textContent)")
    columns, rows = len(values["x"]), len(values["y"])
    said = shown.page.locator(".hover output")
    assert said.text_content() == ""
    for across, up in ((0.1, 0.9), (0.45, 0.55), (0.9, 0.2)):
        shown.page.mouse.move(box["x"] + across * box["width"], box["y"] + (1.0 - up) * box["height"])
        # Cells at the edges are drawn half: the axes end at their middles.
        column, row = round(across * (columns - 1)), round(up * (rows - 1))
        kind, margin = values["cells"][row * columns + column]
        expected = [values["x"][column][1], values["y"][row][1], values["kinds"][kind], margin]
        assert said.text_content() == "\n".join(filter(None, expected))
        tip = said.bounding_box()
        assert 0 <= tip["x"] <= tip["x"] + tip["width"] <= DESKTOP["width"]
    shown.page.mouse.move(2, 2)
    assert said.text_content() == ""


def test_the_keys_read_the_map(show) -> None:
    shown = show("arc")
    values = shown.page.evaluate("JSON.parse(document.querySelector('.hover script').textContent)")
    said = shown.page.locator(".hover output")
    row, column = divmod(values["start"], len(values["x"]))
    shown.page.locator(".hover").focus()
    for keys, place in (("ArrowRight", (row, column + 1)), ("ArrowUp", (row + 1, column + 1))):
        shown.page.keyboard.press(keys)
        text = said.text_content()
        assert text.splitlines()[:2] == [values["x"][place[1]][1], values["y"][place[0]][1]]
    for _ in range(3 * len(values["x"])):
        shown.page.keyboard.press("ArrowRight")
    assert said.text_content().splitlines()[:2] == [values["x"][-1][1], values["y"][row + 1][1]]
    shown.page.keyboard.press("Tab")
    assert said.text_content() == ""


@pytest.mark.parametrize("name", ["sweep", "comparison"])
def test_a_finger_reads_points(show, name: str) -> None:
    """Each point where it is drawn, within the screen."""
    shown = show(name, PHONE, has_touch=True, is_mobile=True)
    svg = shown.page.locator(".hover svg")
    svg.scroll_into_view_if_needed()
    points = shown.page.evaluate("JSON.parse(document.querySelector('.hover script').textContent).points")
    box, view = svg.bounding_box(), svg.get_attribute("viewBox").split()
    scale = box["width"] / float(view[2])
    for x, y, text in points:
        shown.page.touchscreen.tap(box["x"] + scale * x, box["y"] + scale * y)
        said = shown.page.locator(".hover output")
        assert text in said.text_content().split("\n\n")  # of points that cover each other all are told
        tip = said.bounding_box()
        assert 0 <= tip["x"] <= tip["x"] + tip["width"] <= PHONE["width"]
    assert shown.page.evaluate("document.scrollingElement.scrollWidth") == PHONE["width"]
    assert shown.complaints == []


def test_a_script_that_is_not_the_pages_own_does_not_run(show, folder: Path) -> None:
    """The policy holds: what somebody puts into the file afterwards is refused."""
    text = (folder / "mpcc.html").read_text(encoding="utf-8")
    changed = text.replace("</main>", "<script>document.title = 'x'</script></main>")
    (folder / "changed.html").write_text(changed, encoding="utf-8")
    shown = show("changed")
    assert shown.page.title().startswith("MPCC design")
    assert any("Content Security Policy" in each for each in shown.complaints)
