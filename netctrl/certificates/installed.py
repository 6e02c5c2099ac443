"""Certificates of all queues that a machine, router, switch or modem runs, from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Literal, Unpack

from netctrl.certificates.box import Asked, box_of, sender_names
from netctrl.certificates.certify import DATA_CENTRE, certify, subject_of
from netctrl.certificates.codel import CodelSubject, CycleSubject
from netctrl.certificates.ecn.dctcp import dctcp_as_linux, dctcp_as_switch
from netctrl.certificates.inputs.queue import InstalledQueue, NamedLaw, Thresholds
from netctrl.certificates.inputs.tc import NO_LAW
from netctrl.certificates.loops import read_mixture
from netctrl.certificates.pi_laws import dualpi2_as_linux, each_flow, pi2, pie_as_linux
from netctrl.certificates.record import QueueCertificate
from netctrl.certificates.red import RedSubject, red_as_linux, wred_as_switch
from netctrl.certificates.subject import PiSubject, Subject
from netctrl.core.errors import InvalidValue, Status
from netctrl.core.units import SIZES, checked_quantity, format_quantity
from netctrl.laws.targets.dualpi2 import Dualpi2Law
from netctrl.laws.targets.jiffies import us_of_jiffies
from netctrl.laws.targets.pie_law import PIE_STEP, PieLaw
from netctrl.laws.targets.red import RedLaw
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.io.display import Plotted, Rows
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.io.record_file import FileRecord, Record

_TICK_NS = 64
"""Unit in which the kernel keeps pie's target."""
_ANY_BIT_PER_S = 1e9
CERTIFICATES_SCHEMA = "netctrl.certificates/1"


class CertifiedQueue(Record, frozen=True, kw_only=True):
    """A queue that is installed, with its certificate or the reason why it has none."""

    name: str
    """Kind, handle and place."""
    kind: str
    """Name in tc(8), "wred" or "docsis-pie"."""
    device: str = ""
    """Network interface; empty where the input doesn't say."""
    handle: str
    """Handle of the discipline, or name of the profile, class or service flow."""
    parent: str = ""
    """"root", the class above, the colour or priority, or the direction."""
    certificate: QueueCertificate | None
    """null: the queue has no law that can be certified."""
    reason: str
    """Reason why there is none; empty where there is one."""
    unreadable: bool = False
    """Whether the input doesn't say which law runs."""


class InstalledCertificates(Plotted, FileRecord, frozen=True):
    """Certificates by `netctrl certify FILE`, saved as one file.

    Examples
    --------
    >>> import netctrl
    >>> profile = '{"wred_green_enable": "true", "green_min_threshold": "1048576", "green_max_threshold": "2097152"}'
    >>> queues = netctrl.read_queues(text='{"WRED_PROFILE": {"A": ' + profile + '}}')
    >>> netctrl.certify_queues(queues, rtt_s=1e-4, flows=8.0, capacity_bit_per_s=100e9).verdict
    'certified queues: 1 of 1, 0 hold'
    """

    schema: Literal["netctrl.certificates/1"]
    """Version of the file format."""
    queues: tuple[CertifiedQueue, ...]
    """All that are in the input, in its order."""
    provenance: Provenance
    """Provenance of the certificates."""

    @property
    def verdict(self) -> str:
        """How many queues have a certificate, hold, and can't be read, in one sentence."""
        unread = sum(each.unreadable for each in self.queues)
        text = f"certified queues: {len(self._statuses)} of {len(self.queues)}, {sum(self._statuses)} hold"
        return f"{text}, {unread} can't be read" if unread else text

    @property
    def holds(self) -> bool:
        """True where at least one queue has a certificate, all that have one hold, and none is unreadable."""
        unread = any(each.unreadable for each in self.queues)
        return bool(self._statuses) and all(self._statuses) and not unread

    def _shown(self) -> Rows:
        found = ((each.name, each.certificate, each.reason) for each in self.queues)
        return self.verdict, [(name, reason if made is None else made.verdict) for name, made, reason in found]

    @property
    def _statuses(self) -> list[bool]:
        """Whether each certificate holds."""
        found = (each.certificate for each in self.queues if each.certificate is not None)
        return [each.certificate.status is Status.ADMISSIBLE for each in found]


def certify_queues(
    queues: Iterable[InstalledQueue],
    *,
    buffer_bytes: float | None = None,
    argv: Iterable[str] = (),
    **where: Unpack[Asked],
) -> InstalledCertificates:
    """Certificates of queues that are installed, each over the same box.

    Parameters
    ----------
    queues : iterable of InstalledQueue
        From `netctrl.read_queues`.
    buffer_bytes : float, optional
        Buffer of each queue, of which thresholds in percent are, as Junos's are [byte].
    argv : iterable of str
        Command line, for the provenance.
    **where
        The box: `rtt_s`, `flows`, `capacity_bit_per_s`, `window_packets`, `packet_size_bytes`, `senders` and
        `stretches` of `netctrl.certify`. Without a capacity and a window, a queue whose rate the file has gets this. A
        law by thresholds in bytes has no certificate with a window or a range of capacities.

    Returns
    -------
    InstalledCertificates
        With the certificate of each queue, or the reason why it has none.

    Raises
    ------
    InvalidValue
        As `netctrl.certify`.

    Examples
    --------
    >>> import netctrl
    >>> modem = "Main { UsServiceFlow { UsServiceFlowRef 1; MaxRateSustained 20000000; } }"
    >>> found = netctrl.certify_queues(netctrl.read_queues(text=modem), rtt_s=0.02, flows=4.0)
    >>> found.queues[0].name, found.verdict
    ('docsis-pie service flow 1, upstream', 'certified queues: 1 of 1, 1 hold')
    """
    all_queues, command = tuple(queues) if isinstance(queues, Iterable) else (queues,), tuple(argv)
    for each in all_queues:
        if not isinstance(each, InstalledQueue):
            raise InvalidValue("queues", each, "queues as netctrl.read_queues returns them")
    if buffer_bytes is not None:
        checked_quantity("buffer", buffer_bytes, "a size above 0 in bytes", SIZES)
    where = checked_where(where, any(each.capacity_bit_per_s is not None for each in all_queues))
    found = []
    for queue in all_queues:
        own, judged = where, queue
        if queue.capacity_bit_per_s is not None and _without_rate(where):
            own = where | {"capacity_bit_per_s": queue.capacity_bit_per_s}
            taken = f"the file's rate is taken: {format_quantity(queue.capacity_bit_per_s, 'bit/s')}"
            queue = replace(queue, notes=(*queue.notes, taken))
        certificate = None
        try:
            judged = _in_bytes(queue, own, buffer_bytes)
        except InvalidValue as error:
            judged = replace(queue.unread(error), law=None)
        reason = judged.reason
        if judged.law is not None:
            certificate, reason = certified_law(partial(_for_senders, judged, own), own, command)
        shown = {name: getattr(judged, name) for name in ("name", "kind", "device", "handle", "parent", "unreadable")}
        found.append(CertifiedQueue(**shown, certificate=certificate, reason=reason))
    return InstalledCertificates(
        schema=CERTIFICATES_SCHEMA, queues=tuple(found), provenance=provenance(argv=command, libraries=("numpy",))
    )


def _without_rate(where: Asked) -> bool:
    return where.get("capacity_bit_per_s") is None and where.get("window_packets") is None


def _in_bytes(queue: InstalledQueue, where: Asked, buffer_bytes: float | None) -> InstalledQueue:
    """The queue with thresholds in bytes, and without a law that has no certificate, for which there is a reason."""
    match queue.law:
        case Thresholds() as thresholds:
            rate = where.get("capacity_bit_per_s")
            ends = tuple(rate) if isinstance(rate, tuple | list) else (rate, rate)
            one = ends[0] if ends[0] == ends[1] else None
            return replace(queue, law=thresholds.law(where.get("packet_size_bytes", 1500.0), one, buffer_bytes))
        case NamedLaw(name=name) if name in NO_LAW:
            return replace(queue, law=None, reason=NO_LAW[name])
    return queue


def _for_senders(queue: InstalledQueue, where: Asked) -> Subject | CycleSubject:
    """The law of an installed queue below the senders that are asked for: DCTCP at a step has its own."""
    law, senders = queue.law, where.get("senders")
    if isinstance(law, WredLaw | RedLaw) and senders in ("dctcp", ("dctcp",)) and law.min_bytes == law.max_bytes:
        if isinstance(law, WredLaw):
            return dctcp_as_switch(law)
        if law.weight_log <= 1:
            return dctcp_as_linux(law)
    return installed_subject(queue)


def checked_where(where: Asked, own_rates: bool = False) -> Asked:
    """The box of all queues of a list; InvalidValue for one that no law has, which is no queue's own fault.

    Parameters
    ----------
    where : Asked
    own_rates : bool
        Whether queues have rates of their own, so that the box may have none.
    """
    senders = where.get("senders")
    where["senders"] = None if senders is None else sender_names(senders)
    any_rate: Asked = {"capacity_bit_per_s": _ANY_BIT_PER_S} if own_rates and _without_rate(where) else {}
    for name in box_of(pi2(), **(where | any_rate)).inputs.senders:
        if name not in ("dctcp", *DATA_CENTRE):
            read_mixture(name)
    return where


def certified_law(
    law: Callable[[], Subject | CycleSubject], where: Asked, command: tuple[str, ...]
) -> tuple[QueueCertificate | None, str]:
    """A law's certificate over a box, or the reason why it has none.

    Parameters
    ----------
    law : callable
        It makes the law; InvalidValue: the law has no subject.
    where : Asked
        The box.
    command : tuple of str
        Command line, for the provenance.
    """
    try:
        return certify(law(), argv=command, **where), ""
    except InvalidValue as error:
        return None, f"{error.argument}: got {error.got}, takes {error.takes}"


def installed_subject(queue: InstalledQueue) -> Subject | CycleSubject:
    """The law of an installed queue, in its target's arithmetic.

    Raises
    ------
    InvalidValue
        A queue without a law, or one in other units than bytes.
    """
    match queue.law:
        case PieLaw() as law:
            subject = _pie(law)
            subject = each_flow(subject) if queue.kind == "fq_pie" else subject
        case Dualpi2Law() as law:
            parameters: dict[str, float | int | str | bool] = {
                "target_s": law.target_ns * 1e-9,
                "tupdate_s": law.update_ns * 1e-9,
                "alpha": law.shown["alpha"],
                "beta": law.shown["beta"],
                "coupling": law.coupling,
                "drop_early": law.drop_early,
            }
            if not law.step_in_packets:
                parameters["step_s"] = law.step_threshold * 1e-9
            subject = dualpi2_as_linux(law, parameters, law.gains)
        case RedLaw() as law:
            subject = red_as_linux(law)
        case WredLaw() as law:
            subject = wred_as_switch(law)
        case NamedLaw() as law:
            subject = subject_of(law.name, law.parameters)
        case CodelSubject() as law:
            subject = law
        case _:
            raise InvalidValue("queue", queue.name, f"a queue with a law: {queue.reason}")
    if queue.notes and isinstance(subject, PiSubject | RedSubject | CodelSubject):
        subject = replace(subject, notes=(*subject.notes, *queue.notes))
    return subject


def _pie(law: PieLaw) -> PiSubject:
    if law.alpha == 0:
        raise InvalidValue("alpha", 0, "a gain above 0: without it the queue has no target")
    parameters = {
        "target_s": -(-law.target_ticks * _TICK_NS // 1000) * 1e-6,
        "tupdate_s": us_of_jiffies(law.update_jiffies, law.hz) * 1e-6,
        "alpha": law.alpha * PIE_STEP,
        "beta": law.beta * PIE_STEP,
        "implementation": "linux",
        "hz": law.hz,
        "dq_rate_estimator": law.dq_rate_estimator,
        "ecn": law.ecn,
    }
    subject = pie_as_linux(law, parameters, law.gains(1.0))
    if law.bytemode:
        subject = replace(subject, notes=(*subject.notes, "bytemode: packets are as large as the MTU"))
    return subject
