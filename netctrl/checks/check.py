"""Nonlinear checks of certificates of queues."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from netctrl.certificates.record import QueueCertificate
from netctrl.checks import checked_engines
from netctrl.checks.by_packets import judged_by, with_steps
from netctrl.core.errors import InvalidValue, checked_kind
from netctrl.model.design.queue_checks import FailedCheck, QueueCheck

if TYPE_CHECKING:
    from netctrl.checks.point import CheckPoint
    from netctrl.core.names import CheckName


def check_certificate(
    certificate: QueueCertificate, engines: CheckName | Iterable[CheckName] = "fluid"
) -> QueueCertificate:
    """Certificate of a queue with nonlinear checks of its worst point beside it.

    The linear loop describes small deviations. A check runs the law at the certificate's worst point with its limits,
    caps and rules, and says whether the queue comes to rest.

    Parameters
    ----------
    certificate : QueueCertificate
        Of `pie`, `docsis-pie`, `pi2`, `dualpi2`, `red` or `wred`.
    engines : str or iterable of str
        "fluid": the nonlinear fluid from three starts, with the law's own arithmetic; "packet": packets, three seeds;
        "kernel": the Linux kernel in virtual time, three seeds.

    Returns
    -------
    QueueCertificate
        The same with `checks`, and with the figures of packets where the loop alone has none.

    Raises
    ------
    InvalidValue
        An unknown engine, a certificate without an equilibrium, or a law or sender that the engine hasn't with the
        certificate's arithmetic.

    Notes
    -----
    Derived in the documentation, "Certificates of queues": what a check shows.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.certify("dualpi2", rtt_s=0.15, flows=10.0, capacity_bit_per_s=20e6)
    >>> checked = netctrl.check_certificate(found, "fluid")
    >>> checked.certificate.status.value, checked.checks[0].settles
    ('unstable', False)
    """
    checked_kind("certificate", certificate, QueueCertificate)
    found = [_check(certificate, name) for name in checked_engines(engines)]
    return _with_figures(msgspec.structs.replace(certificate, checks=tuple(check for check, _ in found)), found)


def with_checks(certificate: QueueCertificate, engines: Iterable[str]) -> QueueCertificate:
    """The certificate with the checks that could run, and the reasons of those that couldn't."""
    found: list[tuple[QueueCheck, CheckPoint]] = []
    failed: list[FailedCheck] = []
    for name in engines:
        try:
            found.append(_check(certificate, name))
        except InvalidValue as error:
            failed.append(FailedCheck(engine=name, got=str(error.got), takes=error.takes))
    checks = tuple(check for check, _ in found)
    return _with_figures(msgspec.structs.replace(certificate, checks=checks, failed_checks=tuple(failed)), found)


def _check(certificate: QueueCertificate, engine: str) -> tuple[QueueCheck, CheckPoint]:
    from netctrl.checks.engines import check_fluid, check_packets
    from netctrl.checks.point import point_of

    point = point_of(certificate, engine)
    return (check_fluid(point) if engine == "fluid" else check_packets(point, engine)), point


def _with_figures(certificate: QueueCertificate, found: list[tuple[QueueCheck, CheckPoint]]) -> QueueCertificate:
    """The certificate judged by the means of all runs of the first engine that has packets where there are no figures
    yet, with this engine's steps of the load where there are none of packets."""
    from netctrl.checks.engines import figures_of
    from netctrl.checks.steps import load_steps

    for check, point in found:
        if check.engine == "fluid":
            continue
        figures = certificate.certificate.predicted
        if figures is None:
            each = [
                (run.mean_delay_s, run.deviation_s or 0.0, run.delay_99_s or 0.0, run.utilization) for run in check.runs
            ]
            means = [fmean(values) for values in zip(*each, strict=True)]
            engine = "kernel" if check.engine == "kernel" else "packet"
            figures = figures_of(point, certificate.inputs, means, engine, check.flows)
            certificate = judged_by(certificate, figures)
        if figures.steps and check.engine == "packet":
            return certificate
        return with_steps(certificate, load_steps(point, check.engine))
    return certificate
