"""ECN's thresholds by their names in `netctrl.certify`, each for the sender of its name."""

from __future__ import annotations

from collections.abc import Callable

from netctrl.certificates.ecn.dcqcn import DcqcnSubject, dcqcn
from netctrl.certificates.ecn.dctcp import DctcpSubject, dctcp

__all__ = ["ECN_SUBJECTS", "EcnSubject"]

EcnSubject = DctcpSubject | DcqcnSubject

ECN_SUBJECTS: dict[str, Callable[..., EcnSubject]] = {"dctcp": dctcp, "dcqcn": dcqcn}
"""Name -> function that makes a law's subject from its parameters."""
