"""ECN's thresholds by their names in `netctrl.certify`, each with the sender that it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from netctrl.certificates.box import Judged, sender_names
from netctrl.certificates.ecn.dcqcn import DcqcnSubject, dcqcn
from netctrl.certificates.ecn.dctcp import DctcpSubject, dctcp
from netctrl.errors import InvalidValue

__all__ = ["ECN_SUBJECTS", "EcnSubject", "sender_of"]

EcnSubject = DctcpSubject | DcqcnSubject

ECN_SUBJECTS: dict[str, Callable[..., EcnSubject]] = {"dctcp": dctcp, "dcqcn": dcqcn}
"""Name -> function that makes a law's subject from its parameters."""


def sender_of(subject: Judged, senders: str | Iterable[str] | None) -> str | Iterable[str]:
    """Senders that were asked for, by default Reno or the law's own; InvalidValue for others of a law with its own."""
    if not isinstance(subject, EcnSubject):
        return "reno" if senders is None else senders
    given = () if senders is None else sender_names(senders)
    if given not in ((), (subject.name,)):
        raise InvalidValue("sender", given, f"{subject.name} alone, for which these thresholds are certified")
    return subject.name
