"""Thresholds of ECN and the senders that react to them: DCTCP at a step, DCQCN between two thresholds."""

from __future__ import annotations

from collections.abc import Callable

from netctrl.certificates.box import Box
from netctrl.certificates.ecn.dcqcn import DcqcnSubject, dcqcn
from netctrl.certificates.ecn.dcqcn_verdict import dcqcn_verdict
from netctrl.certificates.ecn.dctcp import DctcpSubject, dctcp
from netctrl.certificates.ecn.in_time import dctcp_verdict
from netctrl.certificates.record import QueueVerdict

EcnSubject = DctcpSubject | DcqcnSubject

ECN_SUBJECTS: dict[str, Callable[..., EcnSubject]] = {"dctcp": dctcp, "dcqcn": dcqcn}
"""Name -> function that makes a law's subject from its parameters."""


def ecn_verdict(subject: EcnSubject, box: Box) -> QueueVerdict:
    """Verdict of thresholds over a box, with the senders for which they are made."""
    return dctcp_verdict(subject, box) if isinstance(subject, DctcpSubject) else dcqcn_verdict(subject, box)
