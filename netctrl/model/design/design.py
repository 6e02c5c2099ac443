"""Designs of netctrl's own methods, and reading of Design files."""

from __future__ import annotations

import os
from functools import cache, reduce
from operator import or_
from typing import Any

import msgspec

from netctrl.core.errors import FileError
from netctrl.core.files import read_bounded
from netctrl.core.register import DESIGNS
from netctrl.model.design.arc import ArcCertificate, ArcInputs
from netctrl.model.design.base import MAX_BYTES
from netctrl.model.design.base import Design as Design
from netctrl.model.design.connet import ConnetCertificate, ConnetInputs
from netctrl.model.design.hftrac import HftracCertificate, HftracInputs
from netctrl.model.design.mpc import MpcCertificate, MpcInputs, MpcLaw
from netctrl.model.design.mpc_summary import mpc_summary, mpc_verdict
from netctrl.model.design.mpcc import MpccCertificate, MpccInputs
from netctrl.model.design.pacing import PacingCertificate, PacingInputs
from netctrl.model.design.summary import (
    arc_summary,
    arc_verdict,
    connet_summary,
    connet_verdict,
    hftrac_summary,
    hftrac_verdict,
    mpcc_summary,
    mpcc_verdict,
    pacing_summary,
    pacing_verdict,
)
from netctrl.model.io.arrays import array, json_schema
from netctrl.model.io.json_file import decoded
from netctrl.model.io.provenance import Provenance as Provenance
from netctrl.model.io.provenance import provenance as provenance
from netctrl.model.law import ArcLaw, LinkRateLaw, MpccLaw, PacingLaw, TrackingLaw


class ArcDesign(Design[ArcInputs, ArcLaw, ArcCertificate], frozen=True, tag="arc"):
    """Gain of an ARC queue with its certificate (`netctrl.arc`)."""

    summarise = staticmethod(arc_summary)
    judge = staticmethod(arc_verdict)


class HftracDesign(Design[HftracInputs, LinkRateLaw, HftracCertificate], frozen=True, tag="hftrac", eq=False):
    """Rates of a network's links with their certificate (`netctrl.hftrac`)."""

    summarise = staticmethod(hftrac_summary)
    judge = staticmethod(hftrac_verdict)


class ConnetDesign(Design[ConnetInputs, TrackingLaw, ConnetCertificate], frozen=True, tag="connet", eq=False):
    """A law for delay or jitter with its certificate (`netctrl.connet`)."""

    summarise = staticmethod(connet_summary)
    judge = staticmethod(connet_verdict)


class MpccDesign(Design[MpccInputs, MpccLaw, MpccCertificate], frozen=True, tag="mpcc", eq=False):
    """A window law of data-centre senders with its certificate (`netctrl.mpcc`)."""

    summarise = staticmethod(mpcc_summary)
    judge = staticmethod(mpcc_verdict)


class MpcDesign(Design[MpcInputs, MpcLaw, MpcCertificate], frozen=True, tag="mpc", eq=False):
    """A model predictive controller with its proof and margins (`netctrl.design_mpc`)."""

    summarise = staticmethod(mpc_summary)
    judge = staticmethod(mpc_verdict)


class PacingDesign(Design[PacingInputs, PacingLaw, PacingCertificate], frozen=True, tag="pacing"):
    """A pacing law of one sender with its certificate (`netctrl.pacing`)."""

    summarise = staticmethod(pacing_summary)
    judge = staticmethod(pacing_verdict)


LinkDesign = HftracDesign | MpcDesign
"""Designs whose laws set rates of links."""

AnyDesign = Design[Any, Any, Any]
"""Any kind of Design: netctrl's own, and those of other packages (`netctrl.core.register.DESIGNS`)."""


@cache
def _kinds() -> Any:
    return reduce(or_, (DESIGNS[name] for name in DESIGNS.usable()))


def read_design(path: str | os.PathLike[str]) -> AnyDesign:
    """Read a Design file, strictly.

    Raises
    ------
    FileError
        The file can't be read, isn't JSON, or has an unknown, missing or ill-typed key, which the message names.
    """
    text = read_bounded(path, MAX_BYTES, f"larger than the {MAX_BYTES // 2**20} MiB allowed for a Design file")
    try:
        design: AnyDesign = decoded(path, text, _kinds(), array)
    except msgspec.ValidationError as error:
        raise FileError(path, f"not a netctrl Design: {error}") from None
    # With a single kind msgspec accepts a missing tag.
    tags = msgspec.json.decode(text, type=_Tags)
    if tags.method is None or tags.law.kind is None:
        missing = "`method`" if tags.method is None else "`kind` - at `$.law`"
        raise FileError(path, f"not a netctrl Design: Object missing required field {missing}")
    return design


class _LawTag(msgspec.Struct):
    kind: str | None = None


class _Tags(msgspec.Struct):
    law: _LawTag
    method: str | None = None


def design_json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of Design files; published as data/schema/design-1.json."""
    return json_schema(_kinds(), "netctrl.design/1")
