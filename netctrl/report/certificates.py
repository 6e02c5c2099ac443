"""Reports of certificates of queues and of networks of them."""

from __future__ import annotations

from matplotlib.figure import Figure

from netctrl.certificates.certify import subject_of
from netctrl.certificates.ecn import EcnSubject
from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.certificates.record import QueueCertificate
from netctrl.certificates.search import margin_map
from netctrl.design.queue.design import certificate_of, law_of
from netctrl.design.queue.record import QueueDesign
from netctrl.plotting.certificates import margin_figure
from netctrl.report.fields import field_rows
from netctrl.report.html import Html, figure, folded, notes, rows_table, section
from netctrl.report.origin import origin
from netctrl.report.page import MOODS, Page

__all__ = ["certificate_page", "network_page", "queue_figure"]


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
    drawn = None if verdict.sampled is None else _map(found)
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


def queue_figure(design: QueueDesign) -> Figure:
    """Map of the gain margin of a queue's design around its box."""
    found = certificate_of(design)
    return margin_figure(found, margin_map(law_of(design.law.name, design.law.parameters), found.inputs))


def _map(found: QueueCertificate) -> Figure | None:
    law = subject_of(found.law.name, found.law.parameters)
    if isinstance(law, EcnSubject):
        return None
    return margin_figure(found, margin_map(law, found.inputs))
