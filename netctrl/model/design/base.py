"""What all Designs share: method, inputs, law, certificate, provenance; saved as one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
import numpy as np

from netctrl.errors import InvalidValue
from netctrl.model.io.arrays import array_json, plain
from netctrl.model.io.display import html_table, plot
from netctrl.model.io.files import write_atomically
from netctrl.model.io.provenance import Provenance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["MAX_BYTES", "Design", "Summary"]

MAX_BYTES = 64 * 2**20
_MAX_NUMBERS = MAX_BYTES // 24  # in decimals

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


def _leaves(tree: Mapping[str, Any], prefix: str = ""):
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
