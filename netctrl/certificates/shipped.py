"""Published defaults of queues' laws: which of them holds, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Unpack

from netctrl.certificates.box import Asked
from netctrl.certificates.certify import subject_of
from netctrl.certificates.installed import (
    CERTIFICATES_SCHEMA,
    CertifiedQueue,
    InstalledCertificates,
    certified_law,
    checked_where,
)
from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.model.io.provenance import provenance

HOME: Asked = {"rtt_s": (0.010, 0.100), "flows": (5.0, 20.0), "capacity_bit_per_s": 50e6, "senders": ("reno", "creno")}
"""A home's line, with Reno or with Cubic where it is Reno-friendly."""
CORE: Asked = {"rtt_s": (0.020, 0.100), "flows": (50.0, 200.0), "capacity_bit_per_s": 1e9, "senders": ("reno", "creno")}
"""A router's port."""
_RACK: Asked = {"rtt_s": (50e-6, 100e-6), "flows": (2.0, 40.0), "packet_size_bytes": 1000.0}
"""A port of a data centre."""


class Shipped(NamedTuple):
    """A published default."""

    name: str
    title: str
    law: str
    """Name for `netctrl.certify`."""
    parameters: Mapping[str, Any]
    where: Asked
    """Asked people run it."""
    source: str


_FLOYD = {"probability": 0.1, "weight_log": 9}
"""Greatest probability and weight 2⁻⁹ of the average, as Floyd recommended them in 1997."""
_SHIPPED = (
    Shipped("linux-pie", "Linux pie", "pie", {}, HOME, "net/sched/sch_pie.c, Linux 7.2"),
    Shipped("linux-fq_pie", "Linux fq_pie, each flow alone", "fq_pie", {}, HOME, "net/sched/sch_fq_pie.c, Linux 7.2"),
    Shipped("linux-dualpi2", "Linux dualpi2", "dualpi2", {}, HOME, "net/sched/sch_dualpi2.c, Linux 7.2"),
    Shipped("rfc8033", "PIE", "pie", {"implementation": "rfc"}, HOME, "RFC 8033, Section 4"),
    Shipped("rfc8034", "DOCSIS-PIE", "docsis-pie", {}, HOME, "RFC 8034, Appendix A"),
    Shipped(
        "rfc9332",
        "DualPI2 by its rule",
        "pi2",
        {"alpha": 0.1 * 0.015 / 0.1**2, "beta": 0.3 / 0.1, "target_s": 0.015, "tupdate_s": 0.015},
        HOME,
        "RFC 9332, Appendix A.1: RTT_max of 100 ms",
    ),
    Shipped(
        "pi2-paper",
        "PI2",
        "pi2",
        {"alpha": 5.0 / 16.0, "beta": 50.0 / 16.0, "target_s": 0.020, "tupdate_s": 0.032},
        HOME,
        "De Schepper, Bondarenko, Tsang, Briscoe, CoNEXT 2016, Table 1",
    ),
    Shipped(
        "red-1997",
        "RED, gentle",
        "red",
        {
            "limit_bytes": 150_000,
            "min_bytes": 7_500,
            "max_bytes": 22_500,
            "probability": 0.1,
            "weight_log": 9,
            "gentle": True,
        },
        HOME,
        "Floyd, Discussions of setting parameters, 1997; gentle: Floyd, 2000",
    ),
    Shipped(
        "red-man",
        "Linux red, adaptive",
        "red",
        {
            "limit_bytes": 400000,
            "min_bytes": 30000,
            "max_bytes": 90000,
            "average_packet": 1000,
            "burst": 55,
            "ecn": True,
            "adaptive": True,
        },
        {**HOME, "flows": (5.0, 10.0), "capacity_bit_per_s": 10e6, "rtt_s": (0.050, 0.100)},
        "tc-red(8), EXAMPLE, at its bandwidth of 10 Mbit/s",
    ),
    Shipped(
        "ios-wred",
        "Cisco IOS random-detect, precedence 0",
        "red",
        {"limit_bytes": 1_500_000, "min_bytes": 30_000, "max_bytes": 60_000, **_FLOYD},
        CORE,
        "Cisco IOS Quality of Service Solutions Command Reference, random-detect precedence",
    ),
    Shipped(
        "dctcp-1g",
        "DCTCP's K of 20 packets",
        "dctcp",
        {"k_packets": 20.0},
        {"rtt_s": 100e-6, "flows": (2.0, 10.0), "capacity_bit_per_s": 1e9},
        "Alizadeh et al., SIGCOMM 2010, Section 4: 1 Gbit/s",
    ),
    Shipped(
        "dctcp-10g",
        "DCTCP's K of 65 packets",
        "dctcp",
        {"k_packets": 65.0},
        {"rtt_s": 100e-6, "flows": (2.0, 40.0), "capacity_bit_per_s": 10e9},
        "Alizadeh et al., SIGCOMM 2010, Section 4: 10 Gbit/s",
    ),
    Shipped(
        "dcqcn-paper",
        "DCQCN",
        "dcqcn",
        {"kmin_bytes": 5e3, "kmax_bytes": 200e3, "pmax": 0.01},
        {**_RACK, "flows": (2.0, 8.0), "capacity_bit_per_s": 40e9},
        "Zhu et al., SIGCOMM 2015, Fig. 14",
    ),
    Shipped(
        "cumulus-ecn",
        "Cumulus Linux default ECN, DCQCN",
        "dcqcn",
        {"kmin_bytes": 150e3, "kmax_bytes": 1500e3, "pmax": 1.0},
        {**_RACK, "flows": (2.0, 20.0), "capacity_bit_per_s": 100e9},
        "Cumulus Linux 5 documentation, Quality of Service, default_ecn_red_conf",
    ),
    Shipped(
        "sonic-dcqcn",
        "SONiC AZURE_LOSSLESS, DCQCN",
        "dcqcn",
        {"kmin_bytes": 1048576.0, "kmax_bytes": 2097152.0, "pmax": 0.05},
        {**_RACK, "flows": (2.0, 20.0), "capacity_bit_per_s": 100e9},
        "sonic-buildimage, files/build_templates/qos_config.j2",
    ),
    Shipped(
        "sonic-wred",
        "SONiC AZURE_LOSSLESS, DCTCP",
        "wred",
        {"min_bytes": 1048576, "max_bytes": 2097152, "max_percent": 5, "ecn": True},
        {**_RACK, "capacity_bit_per_s": 100e9, "senders": "dctcp"},
        "sonic-buildimage, files/build_templates/qos_config.j2",
    ),
)
SHIPPED = {each.name: each for each in _SHIPPED}
"""Name -> default, as in `netctrl certify shipped`."""


def certify_shipped(
    names: Iterable[str] = (), *, argv: Iterable[str] = (), **where: Unpack[Asked]
) -> InstalledCertificates:
    """Certificates of published defaults in one's own network, or where people run them.

    Parameters
    ----------
    names : iterable of str
        Of `SHIPPED`; none: all.
    argv : iterable of str
        Command line, for the provenance.
    **where
        The box, as of `netctrl.certify`; each default's own where nothing is given.

    Raises
    ------
    InvalidValue
        An unknown name, or as `netctrl.certify`.
    """
    chosen, command = tuple(names) or tuple(SHIPPED), tuple(argv)
    for name in chosen:
        if name not in SHIPPED:
            raise InvalidValue("name", name, f"one of {', '.join(SHIPPED)}{did_you_mean(name, SHIPPED)}")
    queues, given = [], checked_where(where) if where else None
    for each in (SHIPPED[name] for name in chosen):
        made = partial(subject_of, each.law, each.parameters)
        certificate, reason = certified_law(made, given or each.where, command)
        queues.append(
            CertifiedQueue(
                name=f"{each.title} ({each.source})",
                kind=each.law,
                handle=each.name,
                certificate=certificate,
                reason=reason,
            )
        )
    return InstalledCertificates(
        schema=CERTIFICATES_SCHEMA, queues=tuple(queues), provenance=provenance(argv=command, libraries=("numpy",))
    )
