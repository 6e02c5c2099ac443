"""Pages of certificates of queues and of networks of them."""

from __future__ import annotations

from matplotlib.figure import Figure

from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.certificates.record import QueueCertificate
from netctrl.plotting.certificates import certificate_figure
from netctrl.plotting.pages.fields import field_rows
from netctrl.plotting.pages.html import Html, figure, folded, notes, rows_table, section
from netctrl.plotting.pages.origin import origin
from netctrl.plotting.pages.page import MOODS, Page


def certificate_page(found: QueueCertificate) -> Page:
    """Verdict, margins or limit cycle, and a map of the gain margin of laws that have one."""
    verdict = found.certificate
    parts = [
        rows_table("Loop", field_rows(each))
        for each in (
            verdict.sampled,
            verdict.least_phase,
            verdict.least_reduction,
            verdict.linear,
            verdict.step,
            verdict.cycle,
        )
        if each is not None
    ]
    drawn = None if verdict.sampled is None else certificate_figure(found)
    return Page(
        kind="Certificate",
        title=f"{found.law.name} ({found.law.implementation})",
        verdict=found.verdict,
        mood=MOODS[verdict.status],
        sections=[
            section("Notes", notes(verdict.warnings)),
            section("Summary", rows_table(f"Status: {verdict.status}", found.rows)),
            Html("") if drawn is None else section("Map", figure(drawn, "m")),
            section("Margins", *parts),
            section("Inputs", folded("All inputs", rows_table("Named as in the file", field_rows(found.inputs)))),
            *origin(found.provenance, []),
        ],
    )


def network_page(found: NetworkCertificate, loci: Figure | None = None) -> Page:
    """Verdict, equilibrium, margins and box of a network, with a figure of its loop's eigenvalues."""
    verdict = found.certificate
    tables = [rows_table(f"Link {link.name}", field_rows(link)) for link in found.links]
    tables += [rows_table(f"Flows {group.name}", field_rows(group)) for group in found.flows]
    return Page(
        kind="Certificate",
        title=f"{found.name} (network)",
        verdict=found.verdict,
        mood=MOODS[verdict.status],
        sections=[
            section("Notes", notes(verdict.warnings)),
            section("Summary", rows_table(f"Status: {verdict.status}", found.rows)),
            Html("") if loci is None else section("Eigenvalues", figure(loci, "m")),
            Html("")
            if verdict.margins is None
            else section("Margins", rows_table("Loop", field_rows(verdict.margins))),
            section("Equilibrium", folded("Links and flows", *tables)),
            *origin(found.provenance, []),
        ],
    )
