"""Pages of certificates of queues and of networks of them."""

from __future__ import annotations

from matplotlib.figure import Figure

from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.certificates.record import QueueCertificate
from netctrl.plotting.certificates import certificate_figure, has_map
from netctrl.plotting.pages.fields import field_rows
from netctrl.plotting.pages.html import Html, figure, folded, rows_table, section
from netctrl.plotting.pages.origin import judged
from netctrl.plotting.pages.page import Page


def certificate_page(found: QueueCertificate) -> Page:
    """Verdict, margins or limit cycle, and a map of the gain margin of laws that have one."""
    verdict = found.certificate
    parts = [
        rows_table("Loop", field_rows(each))
        for each in (
            verdict.predicted,
            verdict.codel,
            verdict.sampled,
            verdict.least_phase,
            verdict.least_reduction,
            verdict.linear,
            verdict.step,
            verdict.cycle,
        )
        if each is not None
    ]
    drawn = certificate_figure(found) if verdict.sampled is not None and has_map(found) else None
    return judged(
        "Certificate",
        f"{found.law.name} ({found.law.implementation})",
        found,
        found.rows,
        Html("") if drawn is None else section("Map", figure(drawn, "m")),
        section("Delays and margins", *parts),
        section("Inputs", folded("All inputs", rows_table("Named as in the file", field_rows(found.inputs)))),
    )


def network_page(found: NetworkCertificate, loci: Figure | None = None) -> Page:
    """Verdict, equilibrium, margins and box of a network, with a figure of its loop's eigenvalues."""
    margins = found.certificate.margins
    tables = [rows_table(f"Link {link.name}", field_rows(link)) for link in found.links]
    tables += [rows_table(f"Flows {group.name}", field_rows(group)) for group in found.flows]
    return judged(
        "Certificate",
        f"{found.name} (network)",
        found,
        found.rows,
        Html("") if loci is None else section("Eigenvalues", figure(loci, "m")),
        Html("") if margins is None else section("Margins", rows_table("Loop", field_rows(margins))),
        section("Equilibrium", folded("Links and flows", *tables)),
    )
