"""Laws that can be evaluated: queues by RFC 7928, senders by RFC 9743, by name or from a Design file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.core.register import QUEUE_LAWS, RATE_SENDERS, TCP_SENDERS, WINDOW_LAWS
from netctrl.design.arc.design import arc
from netctrl.design.pacing.design import pacing
from netctrl.laws.aqm.arc import arc_queue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import CakeQueue, FqCodelQueue, FqPieQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.window.records import mpcc_scheme
from netctrl.model.design.design import ArcDesign, MpccDesign, PacingDesign, read_design
from netctrl.model.io.arrays import plain

Kind = Literal["aqm", "congestion control"]

_DISCIPLINES = {
    str(record.__struct_config__.tag): record
    for record in (DualPi2Queue, FqCodelQueue, FqPieQueue, CakeQueue, DropTailQueue)
}
_ARC_FLOWS, _ARC_RTT_S, _ARC_RATE, _PACKET = (6.0, 19.0), 0.1, 10e6, 1500.0
"""Operating points of ARC's default design: those of RFC 7928's congestion levels in `netctrl.evaluation.rfc7928`."""


class Subject(NamedTuple):
    """A law with its parameters, as cases take it."""

    name: str
    kind: Kind
    law: Any
    """QueueRecord, or a sender of a scenario: a word or a record."""
    origin: str
    """Where the parameters come from, in words."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters by name, as in scenario files."""
        if isinstance(self.law, str):
            return {}
        record = self.law.pacer() if isinstance(self.law, PacedSender) else self.law
        content = msgspec.to_builtins(record, enc_hook=plain)
        return {name: value for name, value in content.items() if name != "kind"}


def known_laws() -> dict[str, Kind]:
    """Names of all laws -> what each is."""
    senders = (*TCP_SENDERS, *RATE_SENDERS, *WINDOW_LAWS)
    found: dict[str, Kind] = dict.fromkeys(senders, "congestion control")
    found.update(dict.fromkeys((*QUEUE_LAWS, *_DISCIPLINES), "aqm"))
    return found


def subject_of(law: str | os.PathLike[str], parameters: Mapping[str, Any] | None = None) -> Subject:
    """A law by name, or the law of a Design file.

    Parameters
    ----------
    law : str or path
        A queue (arc, pie, codel, ...), a sender (reno, cubic, bbr, own-rate, ...), or the file of a Design of arc,
        pacing or mpcc.
    parameters : mapping, optional
        Values of the law's parameters in place of its defaults, with units as in scenario files.

    Raises
    ------
    InvalidValue
        An unknown law or parameter, a value that the law refuses, or a law without a default.
    FileError
        The Design file can't be read.
    """
    if not isinstance(law, str | os.PathLike):
        raise InvalidValue("law", law, "the name of a law, or a Design file")
    name = os.fspath(law)
    given = _checked_mapping(parameters)
    if name.endswith(".json"):
        found = _of_design(name)
    elif name in _DISCIPLINES or name in QUEUE_LAWS:
        found = _queue(name, given)
    elif name in known_laws():
        found = _sender(name, given)
    else:
        known = sorted(known_laws())
        raise InvalidValue("law", name, f"a Design file, or one of {', '.join(known)}{did_you_mean(name, known)}")
    return with_parameters(found, given) if given else found


def with_parameters(subject: Subject, parameters: Mapping[str, Any]) -> Subject:
    """The law with other values of some parameters.

    Raises
    ------
    InvalidValue
        An unknown parameter, or a value that the law refuses.
    """
    known = () if isinstance(subject.law, str | PacedSender) else subject.law.__struct_fields__
    for name, value in parameters.items():
        if name not in known:
            listed = f"a parameter of {subject.name}: {', '.join(known)}{did_you_mean(name, known)}"
            raise InvalidValue(
                "parameters", f"{name}={value}", listed if known else f"nothing: {subject.name} has none"
            )
    try:
        law = msgspec.structs.replace(subject.law, **parameters)
    except InvalidValue as error:
        raise InvalidValue("parameters", f"{error.argument}={error.got}", error.takes) from None
    return subject._replace(law=law, origin=f"{subject.origin}; given: {', '.join(parameters)}")


def _checked_mapping(parameters: Any) -> dict[str, Any]:
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise InvalidValue("parameters", parameters, "a mapping from names of parameters to values")
    return dict(parameters)


def _of_design(name: str) -> Subject:
    design, origin = read_design(name), f"Design file {Path(name).name}"
    if isinstance(design, ArcDesign):
        return Subject("arc", "aqm", arc_queue(design.law, _PACKET), origin)
    if isinstance(design, PacingDesign):
        return Subject("paced", "congestion control", PacedSender(law=design.law), origin)
    if isinstance(design, MpccDesign):
        return Subject("mpcc", "congestion control", mpcc_scheme(design.law), origin)
    raise InvalidValue("law", f"{name}, a Design of {design.method}", "a Design of arc, pacing or mpcc")


def _queue(name: str, given: dict[str, Any]) -> Subject:
    if name == "arc" and "alpha" not in given:
        design = arc(_ARC_FLOWS, _ARC_RTT_S, _ARC_RATE, packet_size_bytes=_PACKET)
        low, high = (f"{flows:g}" for flows in _ARC_FLOWS)
        origin = f"netctrl.arc for {low} to {high} flows, {_ARC_RATE / 1e6:g} Mbit/s, {1e3 * _ARC_RTT_S:g} ms"
        return Subject(name, "aqm", arc_queue(design.law, _PACKET), origin)
    record = _DISCIPLINES.get(name) or QUEUE_LAWS[name].record
    return Subject(name, "aqm", _built(record, given), "defaults")


def _sender(name: str, given: dict[str, Any]) -> Subject:
    if name == "paced":
        return Subject(name, "congestion control", PacedSender(law=pacing().law), "netctrl.pacing()")
    if name in TCP_SENDERS:
        return Subject(name, "congestion control", name, "defaults")
    record = RATE_SENDERS[name].record if name in RATE_SENDERS else WINDOW_LAWS[name].record
    return Subject(name, "congestion control", _built(record, given), "defaults")


def _built(record: Any, given: dict[str, Any]) -> Any:
    """The law with its defaults, and what is given for parameters that have none."""
    required = [field.name for field in msgspec.structs.fields(record) if field.required]
    missing = [name for name in required if name not in given]
    if missing:
        takes = f"values of {', '.join(missing)} (--set {missing[0]}=VALUE), or a Design file"
        raise InvalidValue("law", record.__struct_config__.tag, takes)
    try:
        return record(**{name: given[name] for name in required})
    except InvalidValue as error:
        raise InvalidValue("parameters", f"{error.argument}={error.got}", error.takes) from None
