"""Design files: method, inputs, law, certificate, provenance; the one thing that is saved, simulated, exported."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
import numpy as np

from netctrl.errors import FileError, InvalidValue
from netctrl.model.design.arc import ArcCertificate, ArcInputs
from netctrl.model.design.arc_upgrade import upgraded
from netctrl.model.design.connet import ConnetCertificate, ConnetInputs
from netctrl.model.design.hftrac import HftracCertificate, HftracInputs
from netctrl.model.design.mpcc import MpccCertificate, MpccInputs
from netctrl.model.design.pacing import PacingCertificate, PacingInputs
from netctrl.model.design.summary import (
    arc_summary,
    arc_verdict,
    connet_summary,
    hftrac_summary,
    mpcc_summary,
    pacing_summary,
)
from netctrl.model.io.arrays import array, array_json, json_schema, plain
from netctrl.model.io.display import html_table, plot
from netctrl.model.io.files import read_bounded, write_atomically
from netctrl.model.io.json_file import decoded
from netctrl.model.io.provenance import Provenance, provenance
from netctrl.model.law import ArcLaw, LinkRateLaw, MpccLaw, PacingLaw, TrackingLaw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "AnyDesign",
    "ArcDesign",
    "ConnetDesign",
    "Design",
    "HftracDesign",
    "MpccDesign",
    "PacingDesign",
    "Provenance",
    "design_json_schema",
    "provenance",
    "read_arc_design",
    "read_design",
]

_MAX_BYTES = 64 * 2**20
_MAX_NUMBERS = _MAX_BYTES // 24  # in decimals


Summary = tuple[str, list[tuple[str, str]]]
Inputs = TypeVar("Inputs")
Law = TypeVar("Law")
Certificate = TypeVar("Certificate")


class Design(
    msgspec.Struct,
    Generic[Inputs, Law, Certificate],
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="method",
):
    """What all designs share; each method names the types of its inputs, law and certificate."""

    summarise: ClassVar[Callable[[Any, Any, Any], Summary]]
    """A function of inputs, law and certificate: what `summary` gives."""

    schema: Literal["netctrl.design/1"]
    inputs: Inputs
    law: Law
    certificate: Certificate
    provenance: Provenance

    @property
    def method(self) -> str:
        """Name of the design method, as on the command line."""
        return str(self.__struct_config__.tag)

    def to_json(self) -> str:
        """The Design file's text: strict JSON, ends with a newline.

        Raises
        ------
        InvalidValue
            A law of so many numbers that `read_design` wouldn't take the file.
        """
        _check_size(self.law)
        return array_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the Design file: beside its place first, then renamed, so that no half of it is ever there."""
        write_atomically(path, self.to_json().encode())

    def to_pandas(self) -> pd.Series:
        """Law and certificate as one pandas Series, nested names joined by dots."""
        import pandas as pd

        parts = {
            "law": msgspec.to_builtins(self.law, enc_hook=plain),
            "certificate": msgspec.to_builtins(self.certificate),
        }
        return pd.Series(dict(_leaves(parts)), name=self.method)

    def summary(self) -> Summary:
        """A title, and what a person wants to know first as (name, text) rows."""
        return self.summarise(self.inputs, self.law, self.certificate)

    @property
    def headline(self) -> str:
        """What and how it came out, in a line or two."""
        certificate: Any = self.certificate
        return f"{self.summary()[0]}: {certificate.status.upper()}"

    def _repr_html_(self) -> str:
        certificate: Any = self.certificate
        title, rows = self.summary()
        rows = [("status", str(certificate.status)), *rows]
        return html_table(title, rows + [("warning", warning) for warning in certificate.warnings])

    def plot(self, **options: Any) -> Figure:
        """What a person wants to see of this design, as a matplotlib Figure (`netctrl.register.FIGURES`)."""
        return plot(self, **options)


class ArcDesign(Design[ArcInputs, ArcLaw, ArcCertificate], frozen=True, tag="arc"):
    """Gains of an ARC queue with their certificate (`netctrl.arc`)."""

    summarise = staticmethod(arc_summary)

    @property
    def headline(self) -> str:
        """Whether it is safe, in plain words; then what it is."""
        verdict = arc_verdict(self.inputs, self.certificate)
        return f"{verdict}\n{self.summary()[0]}: {self.certificate.status.upper()}"


class HftracDesign(Design[HftracInputs, LinkRateLaw, HftracCertificate], frozen=True, tag="hftrac", eq=False):
    """Rates of a network's links with their certificate (`netctrl.hftrac`)."""

    summarise = staticmethod(hftrac_summary)


class ConnetDesign(Design[ConnetInputs, TrackingLaw, ConnetCertificate], frozen=True, tag="connet", eq=False):
    """A law for delay or jitter with its certificate (`netctrl.connet`)."""

    summarise = staticmethod(connet_summary)


class MpccDesign(Design[MpccInputs, MpccLaw, MpccCertificate], frozen=True, tag="mpcc", eq=False):
    """A window law of data-centre senders with its certificate (`netctrl.mpcc`)."""

    summarise = staticmethod(mpcc_summary)


class PacingDesign(Design[PacingInputs, PacingLaw, PacingCertificate], frozen=True, tag="pacing"):
    """A pacing law of one sender with its certificate (`netctrl.pacing`)."""

    summarise = staticmethod(pacing_summary)


AnyDesign = ArcDesign | HftracDesign | ConnetDesign | MpccDesign | PacingDesign
"""Every kind of Design."""


def read_design(path: str | os.PathLike[str]) -> AnyDesign:
    """Read a Design file, strictly.

    Raises
    ------
    FileError
        It can't be read, isn't JSON, or has an unknown, missing or ill-typed key, which the message names.
    """
    text = read_bounded(path, _MAX_BYTES, f"is larger than a Design file may be ({_MAX_BYTES // 2**20} MiB)")
    try:
        if b'"alpha_over_epoch"' in text:  # an ARC Design, perhaps of an older netctrl
            content = decoded(path, text)
            new = upgraded(content)
            text = text if new is content else msgspec.json.encode(new)
        design = decoded(path, text, AnyDesign, array)
    except msgspec.ValidationError as error:
        raise FileError(path, f"is no netctrl Design: {error}") from None
    # msgspec takes a missing tag for the only one that there is.
    tags = msgspec.json.decode(text, type=_Tags)
    if tags.method is None or tags.law.kind is None:
        missing = "`method`" if tags.method is None else "`kind` - at `$.law`"
        raise FileError(path, f"is no netctrl Design: Object missing required field {missing}")
    return design


def read_arc_design(path: str | os.PathLike[str]) -> ArcDesign:
    """Read the Design file of an ARC queue; FileError as `read_design`, or for a Design of another method."""
    design = read_design(path)
    if not isinstance(design, ArcDesign):
        raise FileError(path, f"is a Design of {design.method}, takes one of arc: others can't be run on a queue yet")
    return design


def _check_size(law: Any) -> None:
    numbers = _count(law)
    if numbers > _MAX_NUMBERS:
        takes = f"at most {_MAX_NUMBERS} in a Design file: a shorter horizon or a smaller reach; or keep it in memory"
        raise InvalidValue("law", f"{numbers} numbers", takes)


def _count(value: Any) -> int:
    """Numbers in the arrays of a law."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, msgspec.Struct):
        return sum(_count(part) for part in msgspec.structs.astuple(value))
    return sum(map(_count, value)) if isinstance(value, tuple) else 0


class _LawTag(msgspec.Struct):
    kind: str | None = None


class _Tags(msgspec.Struct):
    law: _LawTag
    method: str | None = None


def design_json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of Design files; published as data/schema/design-1.json."""
    return json_schema(AnyDesign, "netctrl.design/1")


def _leaves(tree: Mapping[str, Any], prefix: str = ""):
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
