"""CITATION.cff against the format's published schema, and the page made from it."""

from __future__ import annotations

import importlib.util
import json
import re

import jsonschema
import pytest
import yaml
from places import ROOT, TESTS

import netctrl

# https://citation-file-format.github.io/1.2.0/schema.json, CC-BY-4.0, the Citation File Format's authors.
SCHEMA = TESTS / "data" / "cff" / "schema-1.2.0.json"
FILE = ROOT / "CITATION.cff"
PAPERS = {"HFTraC", "MPCC", "CONNET", "pacing", "ARC"}


@pytest.fixture(scope="module")
def cff():
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page() -> str:
    spec = importlib.util.spec_from_file_location("citation", ROOT / "docs" / "citation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.citation(FILE)


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert schema["$id"] == "https://citation-file-format.github.io/1.2.0/schema.json"
    return jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())


def test_the_file_is_valid(cff, validator) -> None:
    assert [error.message for error in validator.iter_errors(cff)] == []


@pytest.mark.parametrize("wrong", [{"authors": []}, {"type": "program"}, {"license": "BSD"}, {"journal": "x"}])
def test_a_wrong_file_is_not_valid(cff, validator, wrong) -> None:
    assert not validator.is_valid(cff | wrong)


def test_it_is_of_this_version_and_names_the_five_papers(cff) -> None:
    assert cff["version"] == netctrl.__version__
    assert {each["notes"] for each in cff["references"]} == PAPERS
    assert len(cff["references"]) == len(PAPERS)


def test_the_page_has_each_work_in_words_and_as_bibtex(cff, page) -> None:
    entries = re.findall(r"^```bibtex\n@(\w+)\{(\w+),\n(.+?)\n\}\n```$", page, re.MULTILINE | re.DOTALL)
    assert {key for _, key, _ in entries} == {"netctrl"} | {name.lower() for name in PAPERS}
    for _, _, fields in entries:
        assert re.fullmatch(r"(  \w+ = \{.+\},\n?)+", fields)
        assert fields.count("{") == fields.count("}")
    assert [kind for kind, _, _ in entries].count("misc") == 3
    for paper in cff["references"]:
        assert f"*{paper['title']}*" in page
        for author in paper["authors"]:
            assert f"{author['given-names']} {author['family-names']}" in page
            assert f"{author['family-names']}, {author['given-names']}" in page
    assert "author = {{The netctrl developers}}" in page
    assert "IEEE/ACM Transactions on Networking, 26(6), page 2443, 2018." in page


def test_each_paper_is_linked_to_the_page_that_derives_it(page) -> None:
    links = re.findall(r"\]\((\.\./explanation/\w+\.md)\)", page)
    assert len(links) == len(PAPERS)
    assert all((ROOT / "docs" / "reference" / link).resolve().is_file() for link in links)
