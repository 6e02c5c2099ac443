"""Pacing law of a Design as a sender, alone or as a cap on a window."""

from __future__ import annotations

from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.law import RateLaw, RateSender, SenderRecord
from netctrl.model.design.design import PacingDesign, read_design
from netctrl.model.law import PacingLaw


class PacedSender(SenderRecord, frozen=True, kw_only=True, tag="paced"):
    """The law of a Design of pacing; give its file or the law itself, or simulate the Design with the scenario."""

    file: str = ""
    """A Design file; in a scenario file, beside it. Empty: the Design that is simulated with the scenario."""
    law: PacingLaw | None = None
    """The law itself; null: that of `file`."""
    window: str | None = None
    """A registered window law, which the law's rate is a cap on; null: nothing but the law. A Design that is simulated
    with the scenario caps H-TCP where its law is the paper's."""

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or "\0" in self.file or (self.file and self.law is not None):
            raise InvalidValue("file", self.file, "the name of a Design file of pacing, or give its law")
        if self.law is not None and not isinstance(self.law, PacingLaw):
            raise InvalidValue("law", self.law, "a pacing law: the law of a Design that netctrl.pacing made")

    def pacer(self) -> PacingLaw:
        """The sender's law, read from a named file if necessary. Raises FileError, and InvalidValue for another
        method's Design."""
        if self.law is not None:
            return self.law
        if not self.file:
            raise InvalidValue("sender", "paced", "a Design of pacing with the scenario, a file, or a law")
        design = read_design(self.file)
        if not isinstance(design, PacingDesign):
            raise InvalidValue("file", self.file, f"a Design of pacing; this one is of method {design.method}")
        return design.law


def _law() -> RateLaw:
    from netctrl.laws.rate.paced_rows import PACED_ROWS

    return PACED_ROWS


PACED = RateSender(PacedSender, _law)
