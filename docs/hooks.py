"""What mkdocs does beside its configuration: MathML from LaTeX, claims, pages from the root, a mended search."""

from __future__ import annotations

import csv
import html
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]  # netctrl isn't installed where docs are built; the module needs nothing
import citation  # noqa: E402
import formulas  # noqa: E402
import generated  # noqa: E402
import result_records  # noqa: E402
import scenario_files  # noqa: E402

import netctrl  # noqa: E402
from netctrl.model.claim import RULE, Claim, read_claims  # noqa: E402

FROM_THE_ROOT = {"changelog.md": "CHANGELOG.md", "contributing/index.md": "CONTRIBUTING.md"}
# What pymdownx.arithmatex leaves in generic mode.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

# A line such as "[claims: Fig. 5]": the page's paper's claims (figures/arc.md: data/claims/arc.csv) whose place begins
# with that.
CLAIMS = re.compile(r"^\[claims: (.+)\]$", re.MULTILINE)
# A line such as "[table: arc-peers]": docs/assets/arc-peers.csv.
TABLE = re.compile(r"^\[table: ([\w-]+)\]$", re.MULTILINE)


# lunr 2.3.9 names a node of its set of words by its edges, each a character and its child's number, run together. Where
# that character is a digit two nodes can have one name; one then stands for both, and the set has words that the index
# hasn't: a search for "50" throws and finds nothing (lunr.js issue 503, open). A full stop ends the number.
WORD_NODE = ("e=e+s+o.id}", 'e=e+s+o.id+"."}')

# Where a page's path begins with -> its weight in the search: what to do before why, and both before what there is.
WEIGHTS = {
    "how-to/my-queue": 20.0,
    "how-to/": 8.0,
    "tutorials/": 4.0,
    "explanation/": 3.0,
    "figures/": 3.0,
    "reference/nomenclature": 7.0,
    "reference/citation": 8.0,
    "reference/api/designs": 16.0,
    "reference/api/results": 1.2,
    "reference/api/": 4.0,
    "reference/": 2.0,
    "contributing/": 0.1,
    "changelog": 0.05,
    "": 1.0,
}


def on_config(config: Any) -> Any:
    """Show the version at the foot of each page; edit links only where it is known whose."""
    config.copyright = f"netctrl {netctrl.__version__}. {config.copyright}"
    if not config.repo_url:
        config.edit_uri = None
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made now, and those whose source is in the root, with links made to fit."""
    root = Path(config.config_file_path).parent
    for page, source in FROM_THE_ROOT.items():
        up = "../" * page.count("/")
        text = (root / source).read_text(encoding="utf-8").replace("](docs/", f"]({up}")
        for other, name in FROM_THE_ROOT.items():
            text = text.replace(f"]({name}", f"]({up}{other}")
        made = File.generated(config, page, content=text)
        made.edit_uri = f"../{source}"
        files.append(made)
    pages = generated.api_pages(netctrl._PUBLIC, netctrl._INNER) | generated.notebook_pages(root)
    pages["reference/command-line.md"] = generated.command_line(root)
    pages["reference/file-formats.md"] = generated.file_formats(root / "data" / "schema")
    pages |= result_records.Results(root, netctrl._PUBLIC | netctrl._INNER).pages()
    pages["reference/scenario-files.md"] = scenario_files.scenario_files()
    pages["reference/citation.md"] = citation.citation(root / "CITATION.cff")
    for page, text in pages.items():
        made = File.generated(config, page, content=text)
        if page == "reference/citation.md":
            made.edit_uri = "../CITATION.cff"
        elif page.startswith("tutorials/notebooks/"):
            made.edit_uri = f"../notebooks/{Path(page).stem}.ipynb"
        files.append(made)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace each line that asks for claims, or for a table that a figure made, by the table; weigh the page."""
    root = Path(config.config_file_path).parent
    weight = next(weight for start, weight in WEIGHTS.items() if page.file.src_path.startswith(start))
    page.meta["search"] = {"boost": weight}
    claims = root / "data" / "claims" / f"{Path(page.file.src_path).stem}.csv"

    def made(match: re.Match[str]) -> str:
        with (root / "docs" / "assets" / f"{match[1]}.csv").open(newline="", encoding="utf-8") as file:
            head, *body = csv.reader(file)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *body])

    def table(match: re.Match[str]) -> str:
        chosen = [claim for claim in read_claims(claims) if re.match(rf"{re.escape(match[1])}(?!\d)", claim.where)]
        if not chosen:
            raise PluginError(f"{page.file.src_path}: data/claims/{claims.name} has nothing about {match[1]}")
        lines = ["| claim | in | stated | here | verdict |", "|---|---|---|---|---|"]
        for claim in chosen:
            text = f"{claim.claim}<br><small>{claim.why}</small>"
            place = claim.where.removeprefix(match[1]).lstrip(", ")
            cells = [text, place, claim.statement, _shown(claim), f"**{claim.verdict}**"]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        summary = f"<details markdown><summary>{len(chosen)} claims, each beside what we find</summary>"
        return "\n".join([summary, "", *lines, "", f"<small>{html.escape(RULE)}</small>", "", "</details>"])

    return CLAIMS.sub(table, TABLE.sub(made, markdown))


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Replace each formula by MathML, which browsers draw without a script."""

    def shown(match: re.Match[str]) -> str:
        latex = html.unescape(match[3]).strip()
        display = "block" if match[2] == "[" else "inline"
        try:
            converted = formulas.mathml(latex, display)
        except Exception as error:
            raise PluginError(f"{page.file.src_path}: {latex!r} is not LaTeX that can be shown: {error!r}") from error
        return f'<div class="formula">{converted}</div>' if display == "block" else converted

    converted = FORMULA.sub(shown, content)
    if 'class="arithmatex"' in converted:
        raise PluginError(f"{page.file.src_path}: a formula was left unconverted")
    return converted


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page with formulas that does not bring the rule for their font."""
    if "<math" in output and not re.search(r'<link rel="stylesheet" href="[./]*assets/math\.css">', output):
        raise PluginError(f"{page.file.src_path}: a page with formulas needs assets/math.css in mkdocs.yml's extra_css")
    return on_post_template(output)


def on_post_template(output: str, **_: Any) -> str:
    """Keep a page from asking the repository's host for its stars, which Material's script does by this attribute."""
    return output.replace(' data-md-component="source"', "")


def on_post_build(config: Any) -> None:
    """Mend the search's script, see WORD_NODE."""
    for script in Path(config.site_dir, "assets", "javascripts", "workers").glob("search.*.js"):
        text = script.read_text(encoding="utf-8")
        if text.count(WORD_NODE[0]) != 1:
            raise PluginError(f"{script.name}: the search's words are named in another way; see WORD_NODE")
        script.write_text(text.replace(*WORD_NODE), encoding="utf-8")


def _shown(claim: Claim) -> str:
    """Value with its interval to four digits, whole ones as they are; its unit; how many runs it is of."""
    if claim.value is None:
        return ""
    text = f"{claim.value:,.0f}" if claim.value.is_integer() and abs(claim.value) < 1e9 else f"{claim.value:.4g}"
    if claim.half_width is not None:
        text += f" ± {claim.half_width:.2g}"
    unit = "" if claim.unit == "1" else claim.unit
    return f"{text} {unit}".rstrip() + (f"<br><small>{claim.runs} runs</small>" if claim.runs else "")
