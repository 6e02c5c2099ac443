"""Pages of all kinds: nothing from elsewhere, well formed, the same twice, what a user wrote is text; and they say what
the record says."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_support import DESIGNS, EVIL, TWO_FLOWS, Reader, a_design, a_sweep, coarse_map, read_page, two_flows

import netctrl
from netctrl.engines.what_if.record import case_row
from netctrl.engines.what_if.run import what_if
from netctrl.evaluation.metrics import METRICS
from netctrl.evaluation.record import difference_text, measured_text
from netctrl.model.datasets import network_path, scenario_path, sweep_path
from netctrl.model.io.display import page
from netctrl.model.io.provenance import provenance
from netctrl.plotting.pages import designs
from netctrl.plotting.pages.origin import read_lines
from netctrl.plotting.pages.page import Page
from netctrl.plotting.pages.sweeps import sweep_page

MAX_BYTES = 1_000_000


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(designs, "arc_stability_map", coarse_map)


def compared() -> bytes:
    return page(netctrl.compare(two_flows(), ["packet", "fluid"], seeds=2))


def simulated() -> bytes:
    return page(netctrl.simulate(two_flows(), "packet"))


def swept() -> bytes:
    spec = a_sweep()
    return sweep_page(spec, netctrl.sweep(spec)).content()


PAGES: dict[str, Callable[[], bytes]] = {
    **{name: (lambda name=name: page(a_design(name))) for name in DESIGNS},
    "comparison": compared,
    "simulation": simulated,
    "evaluation": lambda: page(netctrl.evaluate("arc", only=["7.2", "8.2.2", "8.3"], seeds=2, quick=True)),
    "network": lambda: page(netctrl.simulate(next(a_sweep().cells()).scenario, runs=2)),
    "data centre": lambda: page(netctrl.simulate(netctrl.read("mpcc-dumbbell"))),
    "pacing sender": lambda: page(netctrl.simulate(a_design("pacing to a queue of its own rate"))),
    "sweep": swept,
    "what if": lambda: page(what_if("abilene", scale=2.0, top=3)),
}


class Made(dict[str, bytes]):
    """Pages by name, each made when it is first asked for."""

    def __missing__(self, name: str) -> bytes:
        self[name] = PAGES[name]()
        return self[name]


@pytest.fixture(scope="module")
def made() -> Made:
    return Made()


@pytest.fixture(params=PAGES)
def content(request: pytest.FixtureRequest, made: Made) -> bytes:
    return made[request.param]


@pytest.mark.slow
def test_a_page_is_well_formed_and_needs_nothing_else(content: bytes) -> None:
    found = read_page(content)
    assert found.wrong == []
    assert len(found.ids) == len(set(found.ids))
    assert len(content) < MAX_BYTES
    assert b"http:" not in content
    assert b"https:" not in content


def test_a_page_runs_its_own_script_and_no_other(content: bytes) -> None:
    found = read_page(content)
    policies = [attributes["content"] for tag, attributes in found.tags if attributes.get("http-equiv")]
    (policy,) = policies
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", content.decode(), re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    scripts = [attributes for tag, attributes in found.tags if tag == "script"]
    assert [each for each in scripts if each.get("type") != "application/json"] == [{}]


def test_a_page_is_open_to_all_readers(content: bytes) -> None:
    """A language, a title, one first heading, a name for each picture and table, heads of rows and columns."""
    found = read_page(content)
    tags = [tag for tag, _ in found.tags]
    assert found.tags[0] == ("html", {"lang": "en"})
    assert tags.count("title") == tags.count("h1") == tags.count("main") == 1
    assert all(each.get("aria-label") for tag, each in found.tags if tag == "svg")
    assert tags.count("table") == tags.count("caption") == tags.count("thead") > 0
    assert {each.get("scope") for tag, each in found.tags if tag == "th"} == {"row", "col"}
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arc", "hftrac", "comparison", "evaluation", "sweep"])
def test_the_same_record_gives_the_same_bytes(name: str, made: Made) -> None:
    first = made[name]
    assert PAGES[name]() == first


@pytest.mark.parametrize("name", ["comparison", "simulation", "sweep"])
def test_what_a_user_wrote_is_text(name: str, made: Made) -> None:
    content = made[name]
    assert b"<script>alert" not in content
    assert EVIL in "".join(read_page(content).text)


def test_a_command_line_with_anything_in_it_is_text() -> None:
    argv = ["python", "-m", "netctrl.design", EVIL, "\udcff"]
    content = page(netctrl.mpcc(4, 1e9, 1e-4, argv=argv))
    assert read_page(content).wrong == []
    assert b"<script>alert" not in content


def words(content: bytes) -> str:
    return " ".join(" ".join(read_page(content.replace(b"<wbr>", b"")).text).split())


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_shows_what_it_says_of_itself(name: str, made: Made) -> None:
    design = a_design(name)
    content = made[name]
    found, (title, rows) = words(content), design.summary()
    for text in (title, *(text for row in rows for text in row), *design.certificate.warnings):
        assert " ".join(text.split()) in found
    leaves = {field for field in design.certificate.__struct_fields__ if field != "warnings"}
    shown = {field.partition(".")[0] for field in re.findall(r"<th scope='row'>([\w.<>]+)</th>", content.decode())}
    assert leaves <= {each.replace("<wbr>", "") for each in shown}


MOODS = {
    "arc": ("good", "Safe for 50 flows at 500 ms: yes"),
    "arc, unstable": ("bad", "no, unstable"),
    "arc, no equilibrium": ("bad", "no, TCP has no equilibrium there"),
    "mpcc": ("good", "Safe for 4 flows at 100 µs: yes"),
    "pacing": ("doubt", "no, stable but outside the design rule"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOODS)
def test_the_verdict_comes_first_and_its_colour_is_that_of_the_status(name: str, made: Made) -> None:
    content = made[name].decode()
    mood, says = MOODS[name]
    (found,) = re.findall(r"<p class='verdict ([^']*)'>([^<]*)</p>", content)
    assert found[0] == mood
    assert says in found[1]
    assert content.index("class='verdict") < content.index("<h2>")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "arc, no equilibrium"])
def test_the_python_of_a_page_makes_the_same_design(name: str, made: Made) -> None:
    lines = python_of(made[name])
    assert lines[-1] == 'design.report("report.html")'
    again = executed(lines[:-1])["design"]
    one, other = (json.loads(each.to_json()) for each in (a_design(name), again))
    assert {key: one[key] for key in ("inputs", "law")} == {key: other[key] for key in ("inputs", "law")}
    assert one["certificate"]["status"] == other["certificate"]["status"]


def python_of(content: bytes) -> list[str]:
    (text,) = (each for each in read_blocks(content) if each.startswith("import netctrl"))
    return text.splitlines()


def read_blocks(content: bytes) -> list[str]:
    """Text of the page's code blocks."""
    import html

    return [html.unescape(each) for each in re.findall(r"<pre[^>]*><code>(.*?)</code>", content.decode(), re.DOTALL)]


def executed(lines: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(ast.parse("\n".join(lines)), "page", "exec"), names)
    return names


@pytest.mark.slow
def test_a_page_says_the_command_that_made_it(made: Made) -> None:
    assert "python -m netctrl.design arc --N 50" in read_blocks(made["arc"])


def values_of(content: bytes) -> dict[str, Any]:
    (text,) = re.findall(r"<script type='application/json'>(.*?)</script>", content.decode())
    return json.loads(text)


def certificate_of(make: Callable[[], Any]) -> Any:
    try:
        return make().certificate
    except netctrl.NoAdmissibleDesign as error:
        assert error.design is not None
        return error.design.certificate


@pytest.mark.slow
def test_the_map_tells_the_margins_that_a_design_at_that_point_has(made: Made) -> None:
    """Against `netctrl.arc` itself with this gain, at points of each class."""
    found = values_of(made["arc"])
    columns = len(found["x"])
    gain = a_design("arc").law.alpha_per_packet
    seen = set()
    for place in (found["start"], *range(5, columns * columns, 29)):
        kind, margin = found["cells"][place]
        (_, rtt), (_, flows) = found["y"][place // columns], found["x"][place % columns]
        number, unit = rtt.removeprefix("RTT ").split()
        tau = float(number) * {"s": 1.0, "ms": 1e-3}[unit]
        there = float(flows.split()[0]), tau
        proof = certificate_of(lambda at=there: netctrl.arc(*at, alpha_per_packet=gain, simulation=False))
        seen.add(found["kinds"][kind])
        if found["kinds"][kind].startswith("no equilibrium"):
            assert (proof.status, margin) == ("infeasible", "")
        else:
            limit = proof.sampled.alpha_limit
            assert margin.startswith("GM ")
            assert float(margin.split()[1]) == pytest.approx(20.0 * np.log10(limit / gain), abs=0.1)
            assert (found["kinds"][kind] == "unstable") == (not proof.stable)
    assert len(seen) >= 3


@pytest.mark.slow
def test_the_keys_begin_at_the_design(made: Made) -> None:
    found = values_of(made["arc"])
    row, column = divmod(found["start"], len(found["x"]))
    flows = [float(text.split()[0]) for _, text in found["x"]]
    away = [abs(np.log(each / 50.0)) for each in flows]
    assert away[column] == pytest.approx(min(away), abs=1e-3)  # 50 may lie midway between two
    assert [each[0] for each in found["x"]] == sorted(each[0] for each in found["x"])
    assert [each[0] for each in found["y"]] == sorted((each[0] for each in found["y"]), reverse=True)
    assert 0 < row < len(found["y"])


def test_the_sweep_says_what_is_best_and_what_is_on_the_front(made: Made) -> None:
    spec = a_sweep("small")
    frame = netctrl.sweep(spec)
    content = sweep_page(spec, frame).content()
    means = frame.groupby("cell")[["loss_ratio", "backlog_bytes"]].mean().to_numpy()
    better = [[(other <= each).all() and (other < each).any() for other in means] for each in means]
    front = [not any(row) for row in better]
    texts = [text for _, _, text in values_of(content)["points"]]
    assert sorted("on the front" in text for text in texts) == sorted(front)
    backlog = means[:, 1].argmin()
    (verdict,) = re.findall(r"<p class='verdict [^']*'>([^<]*)</p>", content.decode())
    names = ["small, buffer 2000", "small, buffer 20000", "static, factor 1.05", "static, factor 1.2"]
    assert f"least backlog: {names[backlog]} (" in verdict
    assert f"{sum(front)} of 4 cells are on the front" in verdict


def test_the_comparison_says_how_far_engines_are_apart(made: Made) -> None:
    comparison = netctrl.compare(two_flows("two"), ["packet", "fluid"], seeds=2)
    content = page(comparison)
    frame = comparison.to_pandas().pivot(index=["quantity", "of"], columns="engine", values="mean")
    apart = (frame["fluid"] / frame["packet"] - 1.0)[frame["packet"] != 0.0]
    most = apart.abs().idxmax()
    (verdict,) = re.findall(r"<p class='verdict [^']*'>([^<]*)</p>", content.decode())
    assert verdict.startswith(f"fluid is within 5 % of packet in {(apart.abs() <= 0.05).sum()} of {len(apart)} ")
    assert f"{100.0 * apart[most]:+.2g} %, of {most[1]}&#x27;s {most[0]}." in verdict
    assert len(values_of(content)["points"]) == len(apart)


def test_runs_from_files_say_the_python_that_makes_them(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from netctrl.cli.simulate import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(TWO_FLOWS, encoding="utf-8")
    assert main(["two.toml", "--compare", "packet,fluid", "--runs", "2", "--seed", "9", "--report", "r.html"]) == 0
    content = (tmp_path / "r.html").read_bytes()
    again = executed(python_of(content)[:-1])["comparison"]
    assert "".join(read_page(content).text).count(again.table()[1][0][1].split(",")[0].removeprefix("packet ")) >= 1
    assert again.seeds == (9, 10)


def test_files_that_come_with_netctrl_are_read_by_name_on_any_machine() -> None:
    """Also where a scenario and a sweep have one name."""
    for kind, path in (("Scenario", scenario_path("hftrac-testbed")), ("SweepSpec", sweep_path("hftrac-testbed"))):
        (line,) = read_lines(provenance(inputs=[path])).values()
        assert "data/" not in line
        names = executed(["import netctrl", "from netctrl.model.datasets import data_path", f"found = {line}"])
        assert type(names["found"]).__name__ == kind
    (own,) = read_lines(provenance(inputs=[Path(__file__)])).values()
    assert own == f"netctrl.read({__file__!r})"


@pytest.mark.slow
def test_a_page_is_written_whole_or_not_at_all(tmp_path) -> None:
    file = tmp_path / "report.html"
    a_design("ecn").report(file)
    assert file.read_bytes() == page(a_design("ecn"))
    with pytest.raises(netctrl.NetctrlError, match="can't be written"):
        a_design("ecn").report(tmp_path / "nowhere" / "report.html")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_the_reader_sees_what_is_wrong() -> None:
    """The tests' own reader, at a page with each fault."""
    fault = b"<b><img src='http://x/y'><i style='x'></b></main>"
    bad = Page("k", "t", "v", "", []).content().replace(b"</main>", fault)
    found: Reader = read_page(bad)
    assert any("refers to" in each for each in found.wrong)
    assert any("attribute style" in each for each in found.wrong)
    assert any("ends another" in each for each in found.wrong)


@pytest.mark.slow
def test_an_evaluation_shows_its_cases_its_reasons_and_its_metrics(made: Made) -> None:
    evaluation = netctrl.evaluate("arc", only=["7.2", "8.2.2", "8.3"], seeds=2, quick=True)
    found = words(made["evaluation"])
    assert evaluation.verdict in found
    for section in evaluation.sections:
        assert f"{section.section} {section.title}" in found
        for case in section.cases:
            assert case.name in found
            assert case.reason is None or case.reason in found
            for measure in case.measures:
                assert measured_text(measure.metric, measure.mean, measure.half_width) in found
                assert difference_text(measure) in found
                assert METRICS[measure.metric].what in found
    only = ["7.2", "8.2.2", "8.3"]
    assert f"found = netctrl.evaluate('arc', engine='packet', seeds=2, quick=True, only={only}, n_jobs=-1)" in found


def test_what_if_shows_its_cases_and_how_to_ask_again(made: Made) -> None:
    answer, found = what_if("abilene", scale=2.0, top=3), words(made["what if"])
    for each in answer.details:
        assert " ".join(case_row(each.case)) in found
        assert f"Worst of {len(each.demands)} demands" in found


@pytest.mark.parametrize(
    ("options", "call"),
    [
        (["--fail=each-node"], "fail='each-node'"),
        (["--fail", "none", "--scale", "2"], "fail=None"),
        (["--over=m.csv"], ""),
        (["--gravity", "1Gbit"], ""),
    ],
)
def test_a_command_is_told_in_python_only_where_it_is_the_same(options: list[str], call: str) -> None:
    answer = what_if(
        "abilene", top=1, argv=["netctrl", "what-if", "abilene", *options], inputs=[network_path("abilene")]
    )
    found = words(page(answer))
    assert ("answer = what_if(netctrl.read('abilene')" in found) == bool(call)
    assert call in found
