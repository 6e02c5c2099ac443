"""Record of a law, as certificates have it."""

from __future__ import annotations

from netctrl.certificates.record import CertifiedLaw
from netctrl.certificates.subject import Subject

__all__ = ["described"]


def described(subject: Subject) -> CertifiedLaw:
    """A law as certificates name it."""
    return CertifiedLaw(
        name=subject.name,
        implementation=subject.implementation,
        parameters=dict(subject.parameters),
        gains=subject.gains,
        reading_age=subject.read,
        marked=subject.marked,
    )
