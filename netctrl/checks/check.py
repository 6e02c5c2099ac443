"""Nonlinear checks of certificates of queues."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from netctrl.certificates.record import QueueCertificate
from netctrl.checks import checked_engines
from netctrl.core.errors import InvalidValue, checked_kind
from netctrl.model.design.queue_checks import FailedCheck, QueueCheck


def check_certificate(certificate: QueueCertificate, engines: str | Iterable[str] = "fluid") -> QueueCertificate:
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
        The same with `checks`.

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
    names = checked_engines(engines)

    return msgspec.structs.replace(certificate, checks=tuple(_check(certificate, name) for name in names))


def with_checks(certificate: QueueCertificate, engines: Iterable[str]) -> QueueCertificate:
    """The certificate with the checks that could run, and the reasons of those that couldn't."""
    found: list[QueueCheck] = []
    failed: list[FailedCheck] = []
    for name in engines:
        try:
            found.append(_check(certificate, name))
        except InvalidValue as error:
            failed.append(FailedCheck(engine=name, got=str(error.got), takes=error.takes))
    return msgspec.structs.replace(certificate, checks=tuple(found), failed_checks=tuple(failed))


def _check(certificate: QueueCertificate, engine: str) -> QueueCheck:
    from netctrl.checks.engines import check_fluid, check_packets
    from netctrl.checks.point import point_of

    point = point_of(certificate, engine)
    return check_fluid(point) if engine == "fluid" else check_packets(point, engine)
