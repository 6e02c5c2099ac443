"""Senders of data centres: DCTCP at a step, DCQCN between two thresholds, HPCC, which reads telemetry."""

from __future__ import annotations

from netctrl.certificates.box import Box
from netctrl.certificates.ecn.dcqcn import DcqcnSubject
from netctrl.certificates.ecn.dcqcn_verdict import dcqcn_verdict
from netctrl.certificates.ecn.dctcp import DctcpSubject
from netctrl.certificates.ecn.hpcc import HpccSubject, hpcc_verdict
from netctrl.certificates.ecn.in_time import dctcp_verdict
from netctrl.certificates.record import QueueVerdict

EcnSubject = DctcpSubject | DcqcnSubject | HpccSubject


def ecn_verdict(subject: EcnSubject, box: Box) -> QueueVerdict:
    """Verdict over a box, with the senders for which a subject is made."""
    if isinstance(subject, HpccSubject):
        return hpcc_verdict(subject, box)
    return dctcp_verdict(subject, box) if isinstance(subject, DctcpSubject) else dcqcn_verdict(subject, box)
