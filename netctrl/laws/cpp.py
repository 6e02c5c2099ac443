"""C++ text: names, numbers, comments, lines of limited length."""

from __future__ import annotations

import math
from collections.abc import Iterator

_WORDS = """
auto bool break case catch char class const continue default delete do double else enum explicit export extern false
float for friend goto if inline int long mutable namespace new operator private protected public register return short
signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void
volatile while
"""
RESERVED = frozenset(_WORDS.split())
"""Words that can't be names."""
_COLUMNS = 116
_ASCII = str.maketrans(
    {"θ": "theta", "Θ": "Theta", "φ": "phi", "α": "alpha", "β": "beta", "γ": "gamma", "λ": "lambda", "Δ": "Delta"}
    | {
        "₀": "0",
        "₊": "+",
        "\u0302": "",
        "ℓ": "l",
        "←": "<-",
        "→": "->",
        "−": "-",
        "·": "*",
        "≤": "<=",
        "≥": ">=",
        "²": "^2",
        "³": "^3",
        "Σ": "sum",
    }
)


def camel(name: str) -> str:
    """Name in camel case: target_queue -> targetQueue."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def comment(text: str) -> list[str]:
    """Lines of a text as a Doxygen comment."""
    lines = text.translate(_ASCII).split("\n") if text else []
    return [f"/// {line}".rstrip() for line in lines]


def number(value: float) -> str:
    """Shorter form of a number, such as 8000000000.0 or 8e9."""
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "HUGE_VAL" if value > 0.0 else "-HUGE_VAL"
    usual = repr(float(value))
    short = f"{value:g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return short if "e" in short and float(short) == value and len(short) < len(usual) else usual


def wrapped(line: str) -> list[str]:
    """Line of code wrapped to at most 120 columns, at commas or operators."""
    rest, lines = line, []
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    while len(rest) > _COLUMNS and not rest.lstrip().startswith("//"):
        places = [
            (depth, -end)
            for end, depth in _ends(rest)
            if len(indent) + 3 < end < _COLUMNS and (end > _COLUMNS // 2 or depth == 0)
        ]
        if not places:
            break
        place = -min(places)[1]
        lines.append(rest[:place].rstrip())
        rest = indent + rest[place:]
    return [*lines, rest]


def _ends(line: str) -> Iterator[tuple[int, int]]:
    """Positions where a line may be broken, after a comma or an operator, with the depth of parentheses."""
    depth = 0
    for place, letter in enumerate(line):
        depth += (letter in "([{") - (letter in ")]}")
        for sign in (", ", " + ", " - ", " * ", " ? ", " : "):
            if line.startswith(sign, place):
                yield place + len(sign), depth
