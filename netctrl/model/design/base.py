"""Common part of all Designs: method, inputs, law, certificate and provenance, saved as one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, Status, checked_word, optional_import
from netctrl.core.files import write_atomically
from netctrl.model.io.arrays import array_json, plain
from netctrl.model.io.display import Reported, Rows
from netctrl.model.io.provenance import Provenance, provenance

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 64 * 2**20
_MAX_NUMBERS = MAX_BYTES // 24  # as decimal text

ANSWERS = {
    Status.ADMISSIBLE: "yes",
    Status.STABLE: "no, stable but outside the design rule",
    Status.UNSTABLE: "no, unstable",
    Status.INFEASIBLE: "no, there is no equilibrium",
}
"""Status -> whether a design is safe, in words."""

ACCEPTED = {"admissible": (Status.ADMISSIBLE,), "stable": (Status.ADMISSIBLE, Status.STABLE)}
"""What a user accepts -> statuses for which the answer is yes. Exit statuses and saved Designs follow from it."""

Summary = tuple[str, list[tuple[str, str]]]
Inputs = TypeVar("Inputs")
Law = TypeVar("Law")
Certificate = TypeVar("Certificate")


class Design(
    Reported,
    msgspec.Struct,
    Generic[Inputs, Law, Certificate],
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="method",
):
    """A designed control law with its inputs, its certificate and its provenance; saved as one file.

    The design functions (`netctrl.arc`, `hftrac`, `connet`, `mpcc`, `pacing`) return one, and `netctrl.read` reads it.

    Examples
    --------
    >>> import netctrl
    >>> design = netctrl.arc(50, 0.5, 10e6)
    >>> design.save("arc.json")
    >>> netctrl.read("arc.json") == design
    True
    """

    summarise: ClassVar[Callable[[Any, Any, Any], Summary]]
    """Function of inputs, law and certificate that makes `summary`."""

    judge: ClassVar[Callable[[Any, Any], str] | None] = None
    """Function of inputs and certificate that makes the verdict; None: the status in words."""

    schema: Literal["netctrl.design/1"]
    """Version of the file format."""
    inputs: Inputs
    """Inputs of the design."""
    law: Law
    """The law to implement."""
    certificate: Certificate
    """Status, margins and checks of the law."""
    provenance: Provenance
    """How the Design was made."""

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        law: Law,
        certificate: Certificate,
        *,
        argv: Iterable[str] = (),
        files: Iterable[Path] = (),
        libraries: Iterable[str] = ("numpy",),
    ) -> Self:
        """A Design that is made now.

        Parameters
        ----------
        inputs : Inputs
            What the method was given.
        law : Law
            What it found.
        certificate : Certificate
            What was checked of the law.
        argv : iterable of str
            The command line, empty from Python.
        files : iterable of Path
            Files whose contents the Design rests on.
        libraries : iterable of str
            Libraries that computed it.

        Returns
        -------
        Design
        """
        made = provenance(argv=argv, inputs=files, libraries=libraries)
        return cls(schema="netctrl.design/1", inputs=inputs, law=law, certificate=certificate, provenance=made)

    @property
    def method(self) -> str:
        """Name of the design method, as on the command line."""
        return str(self.__struct_config__.tag)

    def to_json(self) -> str:
        """Text of a Design file: strict JSON that ends with a newline.

        Raises
        ------
        InvalidValue
            The law has too many numbers for a Design file.
        """
        numbers = _count(self.law)
        if numbers > _MAX_NUMBERS:
            takes = (
                f"at most {_MAX_NUMBERS} in a Design file: use horizon truncated, a shorter one or a smaller reach, or"
                " don't save it"
            )
            raise InvalidValue("law", f"{numbers} numbers", takes)
        return array_json(self)

    def refusal(self, accept: str = "admissible") -> NoAdmissibleDesign | None:
        """Why the answer to this design is no, as an error to raise; None where it is yes.

        `save` and the exit status of `netctrl design` follow from it.

        Parameters
        ----------
        accept : {"admissible", "stable"}
            Whether a design that is stable but outside the design rule is accepted too.

        Examples
        --------
        >>> import netctrl
        >>> unstable = netctrl.arc(50, alpha_per_packet=1e-3)
        >>> print(str(unstable.refusal("stable")).partition(";")[0])
        Safe for 50 flows at 500 ms: no, unstable
        """
        certificate: Any = self.certificate
        if certificate.status in ACCEPTED[checked_word("accept", accept, ACCEPTED)]:
            return None
        stable = certificate.status == Status.STABLE
        remedy = ["--accept stable (in Python accept='stable') takes it as it is"] * stable
        return NoAdmissibleDesign("; ".join([self.verdict, *certificate.warnings[:1], *remedy]), self)

    def save(self, path: str | os.PathLike[str], accept: str = "admissible") -> None:
        """Write a Design file atomically, so that no reader sees a part of it; an unstable design is never saved.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced.
        accept : {"admissible", "stable"}
            Whether a design that is stable but outside the design rule is saved too.

        Raises
        ------
        NoAdmissibleDesign
            The design is not accepted; the message has its verdict.
        """
        refused = self.refusal(accept)
        if refused is not None:
            raise refused
        write_atomically(path, self.to_json().encode())

    def to_pandas(self) -> pd.Series:
        """Law and certificate as one pandas Series, nested names joined by dots."""
        with optional_import():
            import pandas as pd

        parts = {
            "law": msgspec.to_builtins(self.law, enc_hook=plain),
            "certificate": msgspec.to_builtins(self.certificate),
        }
        return pd.Series(dict(_leaves(parts)), name=self.method)

    def summary(self) -> Summary:
        """Title, and rows of (name, text) with the main results."""
        return self.summarise(self.inputs, self.law, self.certificate)

    @property
    def verdict(self) -> str:
        """One sentence on whether the design holds for its inputs."""
        certificate: Any = self.certificate
        judge = type(self).judge
        if judge is not None:
            return judge(self.inputs, certificate)
        rule = ", it meets the whole design rule" if certificate.status is Status.ADMISSIBLE else ""
        return f"Safe: {ANSWERS[certificate.status]}{rule}"

    @property
    def headline(self) -> str:
        """Verdict, then title and status."""
        certificate: Any = self.certificate
        return f"{self.verdict}\n{self.summary()[0]}: {certificate.status.upper()}"

    def _shown(self) -> Rows:
        certificate: Any = self.certificate
        title, rows = self.summary()
        rows = [("status", str(certificate.status)), *rows]
        return title, rows + [("warning", warning) for warning in certificate.warnings]


def _count(value: Any) -> int:
    """Number of entries in the arrays of a law."""
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
