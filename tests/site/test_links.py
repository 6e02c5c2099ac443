"""Links of the built site: pages, files and anchors that are there, and no file that comes from another host."""

from __future__ import annotations

import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from places import ROOT

pytestmark = pytest.mark.needs("site")

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
"""Elements that load what they name."""


class Anchors(HTMLParser):
    """A page's ids, what it links to, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def read(pages) -> dict[Path, Anchors]:
    return {page: Anchors(page) for page in pages}


def test_every_link_leads_to_a_page_and_every_anchor_to_a_place(read) -> None:
    wrong, followed = [], 0
    for page, found in read.items():
        for link in {*found.links, *found.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"{page}: {link}")
            elif place and target in read and place not in read[target].ids and not place.startswith("__"):
                wrong.append(f"{page}: {link} has no such place")
    assert followed > 3000
    assert wrong == []


def test_nothing_is_loaded_from_another_host(read) -> None:
    assert [link for found in read.values() for link in found.loaded if "//" in link] == []


def test_the_version_is_on_every_page_and_no_edit_link_without_an_address(pages) -> None:
    version = re.search(r'__version__ = "(.+?)"', (ROOT / "netctrl" / "__init__.py").read_text("utf-8"))[1]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f"netctrl {version}." in text, page
        assert ('rel="edit"' in text) <= bool(os.environ.get("NETCTRL_REPO_URL")), page


def test_with_an_address_pages_link_to_it_and_to_their_sources(tmp_path) -> None:
    address = "https://example.org/owner/netctrl"
    environment = os.environ | {"NETCTRL_REPO_URL": address, "NO_MKDOCS_2_WARNING": "1"}
    build = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env=environment, check=True, timeout=300)
    edited = {}
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert f'href="{address}"' in text
        assert 'data-md-component="source"' not in text  # its script would ask another host for stars
        for link in re.findall(r'href="([^"]+)"[^>]*rel="edit"', text):
            edited[page.relative_to(tmp_path).parent.as_posix()] = link.removeprefix(f"{address}/edit/main/")
    assert all((ROOT / source).is_file() for source in edited.values())
    assert edited["changelog"] == "CHANGELOG.md"
    assert edited["reference/citation"] == "CITATION.cff"
    assert edited["tutorials/notebooks/arc"] == "notebooks/arc.ipynb"
    assert edited["how-to/ns3"] == "docs/how-to/ns3.md"
    assert "reference/command-line" not in edited
