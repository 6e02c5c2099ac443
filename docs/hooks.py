"""What mkdocs does beside its configuration: MathML from LaTeX, tables of claims, and two pages from the root."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

FROM_THE_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
# What pymdownx.arithmatex leaves in generic mode.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

# A line such as "[claims: Fig. 5]": the page's paper's claims (arc-figures.md: data/claims/arc.csv) whose place begins
# with that.
CLAIMS = re.compile(r"^\[claims: (.+)\]$", re.MULTILINE)
# A line such as "[table: arc-peers]": docs/assets/arc-peers.csv.
TABLE = re.compile(r"^\[table: ([\w-]+)\]$", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose source is in the repository's root; their links into docs/ are made to fit."""
    root = Path(config.config_file_path).parent
    for page, source in FROM_THE_ROOT.items():
        text = (root / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, name in FROM_THE_ROOT.items():
            text = text.replace(f"]({name}", f"]({other}")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace each line that asks for claims, or for a table that a figure made, by the table."""
    root = Path(config.config_file_path).parent
    claims = root / "data" / "claims" / f"{re.split('[-.]', page.file.src_path)[0]}.csv"

    def made(match: re.Match[str]) -> str:
        with (root / "docs" / "assets" / f"{match[1]}.csv").open(newline="", encoding="utf-8") as file:
            head, *body = csv.reader(file)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *body])

    def table(match: re.Match[str]) -> str:
        with claims.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        chosen = [row for row in rows if re.match(rf"{re.escape(match[1])}(?!\d)", row["where"])]
        if not chosen:
            raise PluginError(f"{page.file.src_path}: data/claims/{claims.name} has nothing about {match[1]}")
        lines = ["| claim | in | paper | here | verdict |", "|---|---|---|---|---|"]
        for row in chosen:
            here = _shown(row["value"], row["unit"])
            claim = f"{row['claim']}<br><small>{row['why']}</small>"
            place = row["where"].removeprefix(match[1]).lstrip(", ")
            cells = [claim, place, row["paper_value"], here, f"**{row['verdict']}**"]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(lines)

    return CLAIMS.sub(table, TABLE.sub(made, markdown))


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Replace each formula by MathML, which browsers draw without a script."""

    def mathml(match: re.Match[str]) -> str:
        # The converter knows `split`, which looks the same, but not `aligned`.
        latex = html.unescape(match[3]).strip().replace("{aligned}", "{split}")
        display = "block" if match[2] == "[" else "inline"
        try:
            converted = convert(latex, display=display)
            ElementTree.fromstring(converted)  # an environment it does not know leaves a bare ampersand
        except Exception as error:
            raise PluginError(f"{page.file.src_path}: {latex!r} is not LaTeX that can be shown: {error!r}") from error
        # The converter passes a command that it does not know on as text.
        if unknown := re.search(r">\s*(\\\w+)", converted):
            raise PluginError(f"{page.file.src_path}: {unknown[1]} in {latex!r} has no MathML")
        # Browsers draw MathML Core, where the cells of a table are aligned by style alone.
        converted = re.sub(r'<mtd columnalign="(\w+)"', r'<mtd style="text-align: \1"', converted)
        return f"<div>{converted}</div>" if display == "block" else converted

    converted = FORMULA.sub(mathml, content)
    if 'class="arithmatex"' in converted:
        raise PluginError(f"{page.file.src_path}: a formula was left unconverted")
    return converted


def _shown(value: str, unit: str) -> str:
    """A number to four digits, whole ones as they are, with its unit where it has one."""
    if not value:
        return ""
    number = float(value)
    text = f"{number:,.0f}" if number.is_integer() and abs(number) < 1e9 else f"{number:.4g}"
    return f"{text} {'' if unit == '1' else unit}".rstrip()
