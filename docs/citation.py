"""The page "Cite netctrl", made from CITATION.cff: the software, then each paper, in words and as BibTeX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ENTRIES = {"article": "article", "conference-paper": "inproceedings", "thesis": "mastersthesis"}
"""Type of a reference in CITATION.cff -> BibTeX's, where it isn't misc."""


def citation(file: Path) -> str:
    """Source of the page."""
    cff = yaml.safe_load(file.read_text(encoding="utf-8"))
    told = f"{cff['message']} This page is made from `CITATION.cff`, which reference managers read too."
    parts = ["# Cite netctrl", told, "## The software", *_entry({**cff, "notes": cff["title"]}), "## The five papers"]
    for paper in cff["references"]:
        page = f"../explanation/{paper['notes'].lower()}.md"
        parts += [f"### {paper['notes']}", *_entry(paper), f"[What netctrl takes from it, derived and checked]({page})"]
    return "\n\n".join(parts) + "\n"


def _entry(work: dict[str, Any]) -> list[str]:
    """A work in words, then as BibTeX."""
    *others, last = [_name(author, "{given-names} {family-names}") for author in work["authors"]]
    authors = f"{', '.join(others)} and {last}" if others else last
    fields = _fields(work)
    where = [fields.get("journal") or fields.get("booktitle") or fields.get("type"), fields.get("school")]
    volume = f"{fields['volume']}({fields['number']}), page {fields['pages']}" if "volume" in fields else None
    words = ", ".join(
        filter(None, [*where, volume, fields.get("note"), fields.get("howpublished"), fields.get("year")])
    )
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    bibtex = [f"@{ENTRIES.get(work['type'], 'misc')}{{{work['notes'].lower()},", *lines, "}"]
    return [f"{authors}: *{work['title']}*. {words[0].upper()}{words[1:]}.", "\n".join(["```bibtex", *bibtex, "```"])]


def _name(author: dict[str, str], form: str) -> str:
    return author["name"] if "name" in author else form.format_map(author)


def _fields(work: dict[str, Any]) -> dict[str, str]:
    """BibTeX's fields; a body that is an author, and the title's capitals, are kept by braces."""
    people = [_name(author, "{family-names}, {given-names}") for author in work["authors"]]
    institution = "school" if work["type"] == "thesis" else "howpublished"
    found = {
        "author": " and ".join(each if "," in each else f"{{{each}}}" for each in people),
        "title": f"{{{work['title']}}}",
        "note": f"version {work['version']}" if "version" in work else None,
        "journal": work.get("journal"),
        "volume": work.get("volume"),
        "number": work.get("issue"),
        "pages": work.get("start"),
        "booktitle": work.get("collection-title"),
        "type": work.get("thesis-type"),
        institution: work.get("institution", {}).get("name"),
        "year": work.get("year"),
    }
    return {name: str(value) for name, value in found.items() if value is not None}
