"""Certificates of queue laws as people run them, over boxes of flows, round-trip times, rates and senders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

from msgspec.structs import replace

from netctrl.certificates.box import Ends, sender_names
from netctrl.certificates.codel import CycleSubject, cycle_verdict
from netctrl.certificates.ecn.dcqcn import dcqcn_as_switch
from netctrl.certificates.ecn.hpcc import hpcc
from netctrl.certificates.from_step import by_step
from netctrl.certificates.inputs.tc import NO_LAW
from netctrl.certificates.loops import judged_box
from netctrl.certificates.point_records import LEAST_UTILIZATION
from netctrl.certificates.record import CERTIFICATE_SCHEMA, CertifiedLaw, QueueCertificate
from netctrl.certificates.subject import Subject
from netctrl.certificates.verdict import queue_verdict
from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.core.register import CERTIFIED, QUEUE_LAWS, refuse_unusable
from netctrl.core.units import long_rtt
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.io.provenance import provenance

DATA_CENTRE = ("dcqcn", "hpcc")
"""Senders of data centres that no window law describes; WRED of a switch is certified below them, too."""


def certify(
    law: str | Subject | CycleSubject,
    *,
    rtt_s: float | Ends,
    flows: float | Ends | None = None,
    capacity_bit_per_s: float | Ends | None = None,
    window_packets: float | Ends | None = None,
    packet_size_bytes: float = 1500.0,
    senders: str | Iterable[str] | None = None,
    stretches: Sequence[float] = (1.0,),
    p99_s: float | None = None,
    utilization: float = LEAST_UTILIZATION,
    parameters: Mapping[str, Any] | None = None,
    argv: Iterable[str] = (),
) -> QueueCertificate:
    """Certificate of a queue's law by its loop alone, as of `netctrl.certify` with `packets=False`.

    Parameters
    ----------
    law, rtt_s, flows, capacity_bit_per_s, window_packets, packet_size_bytes, senders, stretches, p99_s, utilization
        As of `netctrl.certify`.
    parameters, argv
        The same.
    """
    if not isinstance(law, str | CycleSubject) and not hasattr(law, "loops"):
        raise InvalidValue("law", law, "the name of a law, or a subject")
    subject = _below(subject_of(law, parameters or {}) if isinstance(law, str) else law, senders)
    box = judged_box(
        subject,
        rtt_s=rtt_s,
        flows=flows,
        capacity_bit_per_s=capacity_bit_per_s,
        window_packets=window_packets,
        packet_size_bytes=packet_size_bytes,
        senders=senders,
        stretches=stretches,
        p99_s=p99_s,
        utilization=utilization,
    )
    verdict = cycle_verdict(subject, box) if isinstance(subject, CycleSubject) else queue_verdict(subject, box)
    warnings = (*long_rtt(box.rtt[1] * max(box.inputs.stretches)), *verdict.warnings)
    return QueueCertificate(
        schema=CERTIFICATE_SCHEMA,
        law=described(subject),
        inputs=box.inputs,
        certificate=replace(verdict, warnings=warnings),
        provenance=provenance(argv=argv, libraries=("numpy",)),
    )


def _below(law: Subject | CycleSubject, senders: str | Iterable[str] | None) -> Subject | CycleSubject:
    """The law, or where a switch's thresholds have senders that no window law describes theirs."""
    names = () if senders is None else sender_names(senders)
    if law.name != "wred" or not set(names) & set(DATA_CENTRE):
        return law
    if len(names) > 1:
        raise InvalidValue("sender", names, f"{' or '.join(DATA_CENTRE)} alone, without others")
    return dcqcn_as_switch(WredLaw(**dict[str, Any](law.parameters))) if names == ("dcqcn",) else hpcc()


def subject_of(name: str, parameters: Mapping[str, Any]) -> Subject | CycleSubject:
    """The named law with its parameters; InvalidValue for an unknown name or parameter."""
    refuse_unusable(name)
    laws = tuple(dict.fromkeys((*CERTIFIED, *QUEUE_LAWS)))
    if name in NO_LAW:
        raise InvalidValue("law", name, f"one of {', '.join(laws)}; {name} has no certificate: {NO_LAW[name]}")
    if name not in laws:
        raise InvalidValue("law", name, f"one of {', '.join(laws)}{did_you_mean(name, laws)}")
    if name in CERTIFIED:
        make = CERTIFIED[name]
        check_parameters(name, make, parameters)
        return make(**parameters)
    law = QUEUE_LAWS[name]
    check_parameters(name, law.record, parameters)
    return by_step(law, **parameters)


def check_parameters(name: str, make: Callable[..., object], parameters: Mapping[str, Any]) -> None:
    """InvalidValue for a parameter that the function which makes a law doesn't have, or that it lacks.

    Parameters
    ----------
    name : str
        Of the law, for messages.
    make : callable
        Function that makes a law from its parameters.
    parameters : mapping
        Those given.
    """
    known = signature(make).parameters
    for each in parameters:
        if each not in known:
            takes = f"parameters of {name}: {', '.join(known)}{did_you_mean(each, known)}"
            raise InvalidValue("parameters", each, takes)
    missing = [key for key, each in known.items() if each.default is each.empty]
    if any(key not in parameters for key in missing):
        raise InvalidValue("parameters", None, f"{', '.join(missing)} of {name}")


def described(subject: Subject | CycleSubject) -> CertifiedLaw:
    """Record of a law, for a certificate."""
    return CertifiedLaw(
        name=subject.name,
        implementation=subject.implementation,
        parameters=dict(subject.parameters),
        gains=subject.gains,
        reading_age=subject.read,
        marked=subject.marked,
    )
