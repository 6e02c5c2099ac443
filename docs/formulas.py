"""MathML from LaTeX as browsers draw it: what latex2mathml leaves to a reader's eye is put right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", _NAMESPACE)

FUNCTIONS = {"arctan", "asinh", "cos", "cosh", "exp", "lim", "ln", "log", "max", "min", "sin", "sinh", "tan"}
BARS = {"|", "\u2016", "\u2225"}
ACCENTS = {"^": "\u02c6", "\u00af": "\u02c9"}
"""What the converter writes above a letter, and the accent: an ASCII circumflex would sit in the letter."""
_CLOSING = {")", "]", "}", "!", "\u2032", "\u230b", *BARS}
_OPENING = {"(", "[", "{", "\u230a"}
_THIN = "0.1667em"
# A single letter of \mathrm comes as a reference, every other letter as itself.
_ROMAN = re.compile(r"<mi>(&#x000(?:4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A]);)</mi>")


def mathml(latex: str, display: str) -> str:
    """MathML of a formula; ValueError where a command or an environment is not known to the converter."""
    # The converter knows `split`, which looks the same, but not `aligned`.
    converted = convert(latex.replace("{aligned}", "{split}"), display=display)
    # It passes a command that it does not know on as text, and an environment as a bare ampersand.
    if unknown := re.search(r">\s*(\\\w+)", converted):
        raise ValueError(f"{unknown[1]} has no MathML")
    try:
        root = ElementTree.fromstring(_ROMAN.sub(r'<mi mathvariant="normal">\1</mi>', converted))
    except ElementTree.ParseError as error:
        raise ValueError(f"it has no MathML ({error})") from error
    for element in list(root.iter()):
        _mend(element)
    for element in list(root.iter()):
        element[:] = (
            list(_spaced(list(element)))
            if _tag(element) in ("math", "mrow", "mtd", "msqrt", "mstyle")
            else list(element)
        )
    return ElementTree.tostring(root, encoding="unicode")


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _retag(element: Element, tag: str) -> None:
    element.tag = f"{{{_NAMESPACE}}}{tag}"


def _mend(element: Element) -> None:
    """What concerns one element by itself."""
    tag, text = _tag(element), (element.text or "").strip()
    if tag == "mo" and text in BARS and "form" not in element.attrib:
        element.attrib.update(stretchy="false", lspace="0", rspace="0")  # else it grows with the whole row
    elif tag == "mo" and (text == "\u221e" or text in FUNCTIONS):
        _retag(element, "mi")
    elif tag == "mi" and text == ":":
        _retag(element, "mo")
    elif tag == "mi" and re.fullmatch("[\u0391-\u03a9]", text):
        element.set("mathvariant", "normal")  # as LaTeX has them
    elif tag == "mover" and (element[1].text or "") in ACCENTS:
        element.set("accent", "true")
        element[1].text = ACCENTS[element[1].text or ""]
        element[1].attrib.update(stretchy="false")
    elif tag == "mtd" and (align := element.attrib.pop("columnalign", None)):
        element.set("style", f"text-align: {align}")  # MathML Core aligns a table's cells by style alone
    elif tag == "mrow" and len(element) > 1 and all(_is_roman(child) for child in element):
        word = "".join(child.text or "" for child in element)
        element[:] = []
        element.text = word
        _retag(element, "mi")


def _is_roman(element: Element) -> bool:
    return _tag(element) == "mi" and element.get("mathvariant") == "normal" and len(element.text or "") == 1


def _spaced(row: list[Element]) -> Iterator[Element]:
    """A row with thin spaces about names of functions, and with signs that are no operations close to their numbers."""
    for place, element in enumerate(row):
        before = row[place - 1] if place else None
        after = row[place + 1] if place + 1 < len(row) else None
        name = _tag(element) == "mi" and (element.text or "") in FUNCTIONS
        if name and before is not None and not _is_operator(before):
            yield _space()
        if (
            _tag(element) == "mo"
            and element.text in ("\u2212", "-", "+")
            and before is not None
            and _is_operator(before)
        ):
            element.set("form", "prefix")
        yield element
        if name and after is not None and not _opens(after):
            yield _space()


def _is_operator(element: Element) -> bool:
    """An operator after which an operand follows."""
    return _tag(element) == "mspace" or (_tag(element) == "mo" and element.text not in _CLOSING)


def _opens(element: Element) -> bool:
    first = next((each for each in element.iter() if each.text), element)
    return _tag(first) == "mo" and first.text in _OPENING


def _space() -> Element:
    return Element(f"{{{_NAMESPACE}}}mspace", width=_THIN)
