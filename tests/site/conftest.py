"""The built site, its pages as files, and what a browser of a phone's width says of each."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from places import SITE

PHONE = {"width": 390, "height": 844}

# What is too wide, and which formulas aren't drawn: an element of MathML without extent, a numerator that isn't above
# its denominator, an exponent that isn't above the middle of its base.
LOOK = """() => {
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  const box = (element) => element.getBoundingClientRect();
  const middle = (element) => (box(element).top + box(element).bottom) / 2;
  const shown = (element) => element.getClientRects().length > 0;
  const every = (names) => [...document.querySelectorAll(`.md-content ${names}`)].filter(shown);
  const flat = [
    ...every("math").filter((each) => box(each).width < 2 || box(each).height < 2),
    ...every("mfrac").filter((each) => middle(each.children[0]) >= middle(each.children[1]) - 2),
    ...every("msup").filter((each) => box(each.children[1]).bottom >= box(each.children[0]).bottom),
    ...every("msub").filter((each) => box(each.children[1]).top <= box(each.children[0]).top),
  ].map((each) => each.outerHTML.slice(0, 200));
  return { flat, width: document.scrollingElement.scrollWidth, formulas: every("math").length };
}"""


class Seen(NamedTuple):
    """What a browser found on a page."""

    width: int
    formulas: int
    flat: list[str]
    complaints: list[str]
    elsewhere: list[str]


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    return SITE


@pytest.fixture(scope="session")
def pages(site: Path) -> list[Path]:
    """All pages but the one for what isn't there, whose links start at the host's root."""
    found = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(found) > 60
    return found


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves without a line for each request."""

    def log_message(self, *ignored: Any) -> None:
        pass


@pytest.fixture(scope="session")
def host(site: Path) -> Iterator[str]:
    """Address under which the site is served."""
    with served(site) as address:
        yield address


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address under which a folder is served on this machine."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def phone(browser: Any) -> Iterator[Any]:
    """A browser of a phone, in the dark."""
    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True, color_scheme="dark")
    yield context
    context.close()


@pytest.fixture(scope="module")
def seen(phone: Any, host: str, site: Path, pages: list[Path]) -> dict[str, Seen]:
    """What the browser found on each page."""
    paths = [page.relative_to(site).as_posix() for page in pages]
    return {path: visit(phone, host, path) for path in paths}


@pytest.fixture
def seen_of(phone: Any, tmp_path: Path) -> Callable[[str], Seen]:
    """What the browser finds on a page of this content."""

    def look(content: str) -> Seen:
        head = '<!doctype html><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        (tmp_path / "page.html").write_text(f'{head}<div class="md-content">{content}</div>', encoding="utf-8")
        with served(tmp_path) as address:
            return visit(phone, address, "page.html")

    return look


def visit(context: Any, host: str, path: str) -> Seen:
    """Open a page, unfold what is folded on it, and look."""
    page, complaints, elsewhere = context.new_page(), [], []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"not loaded: {request.url}"))
    page.on(
        "request",
        lambda request: None if request.url.startswith((host, "data:", "blob:")) else elsewhere.append(request.url),
    )
    page.goto(host + path, wait_until="load")
    page.evaluate("document.fonts.ready")
    looked = page.evaluate(LOOK)
    page.close()
    return Seen(looked["width"], looked["formulas"], looked["flat"], complaints, elsewhere)
