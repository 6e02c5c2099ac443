"""Thresholds of ECN and the senders that react to them: DCTCP at a step, DCQCN between two thresholds."""

from __future__ import annotations

from netctrl.certificates.box import Box
from netctrl.certificates.ecn.dcqcn import DcqcnSubject
from netctrl.certificates.ecn.dcqcn_verdict import dcqcn_verdict
from netctrl.certificates.ecn.dctcp import DctcpSubject
from netctrl.certificates.ecn.in_time import dctcp_verdict
from netctrl.certificates.record import QueueVerdict

EcnSubject = DctcpSubject | DcqcnSubject


def ecn_verdict(subject: EcnSubject, box: Box) -> QueueVerdict:
    """Verdict of thresholds over a box, with the senders for which they are made."""
    return dctcp_verdict(subject, box) if isinstance(subject, DctcpSubject) else dcqcn_verdict(subject, box)
