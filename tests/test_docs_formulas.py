"""Formulas of the docs: each has MathML that browsers can draw, in a font that travels with the site."""

from __future__ import annotations

import importlib.util
import re
import sys
from xml.etree import ElementTree

import pytest
from places import ROOT

DOCS = ROOT / "docs"
CORE = {
    "math", "mi", "mn", "mo", "mtext", "mspace", "mrow", "mfrac", "msqrt", "mroot", "mstyle", "msub", "msup", "msubsup",
    "munder", "mover", "munderover", "mtable", "mtr", "mtd",
}  # fmt: skip
"""Elements of MathML Core that a formula may use; not merror."""
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\d)", re.DOTALL)


@pytest.fixture(scope="module")
def formulas():
    spec = importlib.util.spec_from_file_location("formulas", DOCS / "formulas.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def written() -> list[tuple[str, str, str]]:
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        text = re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
        for block, inline in FORMULA.findall(text):
            found.append((page.name, block or inline, "block" if block else "inline"))
    return found


def drawn(formulas, latex: str, display: str = "inline") -> ElementTree.Element:
    return ElementTree.fromstring(formulas.mathml(latex, display))


def tags(root: ElementTree.Element) -> list[str]:
    return [element.tag.rpartition("}")[2] for element in root.iter()]


def texts(root: ElementTree.Element, tag: str) -> list[str]:
    return [element.text or "" for element in root.iter() if element.tag.endswith(f"}}{tag}")]


def test_every_formula_of_the_docs_is_mathml_core_without_a_command_left_over(formulas) -> None:
    found = written()
    assert len(found) > 700
    for page, latex, display in found:
        root = drawn(formulas, latex, display)
        assert set(tags(root)) <= CORE, (page, latex)
        assert "\\" not in "".join(root.itertext()), (page, latex)
        assert latex.count("sqrt") == tags(root).count("msqrt"), (page, latex)
        assert len(re.findall(r"frac", latex)) == tags(root).count("mfrac"), (page, latex)


@pytest.mark.parametrize("latex", [r"\frac{\nope}{2}", r"\unknown x", r"\begin{nothing} a & b \end{nothing}"])
def test_what_has_no_mathml_is_refused(formulas, latex) -> None:
    with pytest.raises(Exception, match=r"MathML|nothing|Missing|Extra"):
        formulas.mathml(latex, "inline")


def test_bars_have_the_height_of_their_line(formulas) -> None:
    for latex in (r"1/\lvert L \rvert", r"\lVert M \rVert^2", "|z|"):
        bars = [each for each in drawn(formulas, latex).iter() if each.text in ("|", "\u2016")]
        assert [each.get("stretchy") for each in bars] == ["false", "false"]
        assert [(each.get("lspace"), each.get("rspace")) for each in bars] == [("0", "0")] * 2


def test_a_sign_after_a_relation_is_no_difference(formulas) -> None:
    forms = [each.get("form") for each in drawn(formulas, "-a - b < -c").iter() if each.text == "\u2212"]
    assert forms == [None, None, "prefix"], "the first is a prefix by its place, the second a difference"
    assert [each.get("form") for each in drawn(formulas, "(a) - b").iter() if each.text == "\u2212"] == [None]


def test_names_of_functions_are_names_with_space(formulas) -> None:
    assert texts(drawn(formulas, r"k \ln w"), "mi") == ["k", "ln", "w"]
    assert tags(drawn(formulas, r"k \ln w")).count("mspace") == 2
    assert tags(drawn(formulas, r"\max(a, b)")).count("mspace") == 0
    assert texts(drawn(formulas, r"\mathrm{clip}(x)"), "mi") == ["clip", "x"]


def test_letters_are_upright_where_latex_has_them_so(formulas) -> None:
    upright = [each.text for each in drawn(formulas, r"\mathrm{E} E \Delta \delta").iter() if each.get("mathvariant")]
    assert upright == ["E", "\u0394"]


def test_a_hat_is_an_accent(formulas) -> None:
    (over,) = (each for each in drawn(formulas, r"\hat x").iter() if each.tag.endswith("}mover"))
    assert (over.get("accent"), over[1].text) == ("true", "\u02c6")


def test_the_site_brings_a_font_with_a_math_table() -> None:
    style = (DOCS / "assets" / "math.css").read_text(encoding="utf-8")
    (source,) = re.findall(r'url\("([^"]+)"\)', style)
    family = re.search(r'font-family: "([^"]+)"', style)[1]
    assert re.search(rf'math \{{\s*font-family: "{family}"', style)
    assert "assets/math.css" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    font = (DOCS / "assets" / source).read_bytes()
    assert font[:4] == b"wOF2"
    assert len(font) < 500_000
    assert "SIL OPEN FONT LICENSE" in (DOCS / "assets" / "fonts" / "stix-two-math-OFL.txt").read_text(encoding="utf-8")
    assert "://" not in style
