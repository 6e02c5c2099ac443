"""Certificates of queues with the figures of packets where the loop alone says nothing about delays in ms.

The loop of a queue is linear, and a queue that chance moves over its whole range, that is near its limit, beyond it, or
has windows of a few packets isn't (`netctrl.certificates.predicted`). There packets tell: three runs at each of the
points of the box that seem worst. A queue may oscillate as its loop says and do no harm, or keep 20 dB and starve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace

from netctrl.certificates.box import Asked, longest_of, worst_of
from netctrl.certificates.certify import certify as by_loop
from netctrl.core.errors import InvalidValue, Status

if TYPE_CHECKING:
    from netctrl.certificates.codel import CycleSubject
    from netctrl.certificates.installed import InstalledCertificates
    from netctrl.certificates.point_records import BeyondLoop, LoadStep
    from netctrl.certificates.record import PredictedFigures, QueueCertificate
    from netctrl.certificates.subject import Subject
    from netctrl.core.names import CertifiedName, Registered


def certify(
    law: CertifiedName | Registered | Subject | CycleSubject,
    *,
    parameters: Mapping[str, Any] | None = None,
    packets: bool = True,
    argv: Iterable[str] = (),
    **where: Unpack[Asked],
) -> QueueCertificate:
    """Certificate of a queue's law: what its users feel, and exact margins of the loop that runs, over a box.

    Parameters
    ----------
    law : str or Subject
        "pie", "fq_pie", "docsis-pie", "pi2", "dualpi2", "red", "wred", "codel", "fq_codel", "cake", "dctcp", "dcqcn",
        "pi", a law of another package (to type checkers `netctrl.core.names.Registered("name")`), or a subject of
        `netctrl.certificates`.
    parameters : mapping, optional
        The law's, in SI units, as in {"alpha": 0.16, "target_s": 0.015}, or of "pi" and laws of other packages as in
        scenario files; else its defaults.
    packets : bool
        Whether packets tell delays and utilization where the loop alone doesn't, and what steps of the load do: a tenth
        of a second to some seconds.
    argv : iterable of str
        Command line, for the provenance.
    **where
        The box and what is asked there:

        - rtt_s : float or (float, float). Round-trip time without the queue [s].
        - flows, capacity_bit_per_s : float or (float, float). Number of flows and rate of the link [bit/s].
        - window_packets : float or (float, float). Instead of both, the window of one flow at one round-trip time
          [packet]; nothing is said in ms then.
        - packet_size_bytes : float. By default 1500 [byte].
        - senders : str or iterable of str. "linux-creno", "linux-reno", "reno", "cubic", "creno" (Cubic where it is
          Reno-friendly), "dctcp", or mixtures as in "reno+dctcp": the certificate holds for each. By default PI laws of
          Linux have "linux-creno", "linux-reno", and "cubic" where its curve is in play; "codel", "fq_codel" and "cake"
          have "linux-creno", "dctcp" and "dcqcn" the senders of their names; all others "reno".
        - stretches : sequence of float. Round-trip times of equal groups of flows, over `rtt_s`. With several,
          certificates of senders that acknowledgements clock are exact at points, and prove nothing between them.
        - p99_s : float. Delay of the queue below which 99 % of packets are to wait [s]; by default three targets, or
          three standing delays of a law without a target.
        - utilization : float. Of the link, which is to be reached, by default 0.98.

    Returns
    -------
    QueueCertificate

    Raises
    ------
    InvalidValue
        A value outside its bounds, an unknown law or sender, or flows and a window together.

    Notes
    -----
    Derived in the documentation, "Certificates of queues"; sources are named at `netctrl.plants.queues.queue_loop`.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.certify("dualpi2", rtt_s=(0.01, 0.03), flows=4.0, capacity_bit_per_s=20e6)
    >>> found.certificate.status.value
    'admissible'
    """
    found = by_loop(law, parameters=parameters, argv=argv, **where)
    return with_packets(found) if packets else found


def with_packets(found: QueueCertificate) -> QueueCertificate:
    """The certificate with figures and a status by packets where its loop has none, and with steps of the load at the
    point of its figures; with the reason where packets have no figures either.

    Parameters
    ----------
    found : QueueCertificate
    """
    verdict = found.certificate
    if verdict.predicted is None and not verdict.beyond:
        return found
    from netctrl.checks.data_centre import data_centre_figures, has_data_centre
    from netctrl.checks.engines import measured
    from netctrl.checks.point import point_at
    from netctrl.checks.steps import load_steps

    at: BeyondLoop | PredictedFigures | None = verdict.predicted
    in_trips = has_data_centre(found)
    if verdict.beyond:
        try:
            figures = [
                data_centre_figures(found, each) if in_trips else measured(point_at(found, each), found.inputs)
                for each in verdict.beyond
            ]
        except InvalidValue as error:
            at = verdict.beyond[0]
            silent = f"no delays in ms: {at.why} ({at.point}), and packets lack {error.got}"
            return replace(found, certificate=replace(verdict, warnings=(*verdict.warnings, silent)))
        at = verdict.beyond[figures.index(longest_of(figures))]
        found = judged_by(found, worst_of(figures))
    if at is None or in_trips:  # steps are looked at for seconds, which are millions of round trips there
        return found
    with suppress(InvalidValue):  # no packets of this law, or too many: its figures have no steps
        return with_steps(found, load_steps(point_at(found, at), "packet"))
    return found


def with_steps(found: QueueCertificate, steps: tuple[LoadStep, ...]) -> QueueCertificate:
    """The certificate with steps of the load beside its figures.

    Parameters
    ----------
    found : QueueCertificate
        With figures.
    steps : tuple of LoadStep
    """
    figures = found.certificate.predicted
    if figures is None:
        return found
    return replace(found, certificate=replace(found.certificate, predicted=replace(figures, steps=steps)))


def judged_by(found: QueueCertificate, figures: PredictedFigures) -> QueueCertificate:
    """The certificate with measured figures, by which it holds or not.

    Parameters
    ----------
    found : QueueCertificate
    figures : PredictedFigures
    """
    verdict = found.certificate
    missed = Status.STABLE if verdict.status is Status.ADMISSIBLE else verdict.status
    status = Status.ADMISSIBLE if figures.as_asked else missed
    return replace(found, certificate=replace(verdict, status=status, predicted=figures))


def each_with_packets(found: InstalledCertificates) -> InstalledCertificates:
    """Certificates of several queues, each `with_packets`."""
    queues = (
        each if each.certificate is None else replace(each, certificate=with_packets(each.certificate))
        for each in found.queues
    )
    return replace(found, queues=tuple(queues))
