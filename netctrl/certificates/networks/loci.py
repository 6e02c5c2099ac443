"""Eigenvalues of the loop of a network's certificate, for its picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.certificates.networks.margins import covered, scanned
from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.certificates.networks.scenario import Changed, network_of
from netctrl.errors import InvalidValue
from netctrl.frequency.matrix.crossings import negative_real
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.scenario.scenario import Scenario

__all__ = ["Eigenloci", "eigenloci"]


class Eigenloci(NamedTuple):
    """Eigenvalues of the matrix response L of a network's laws."""

    rad_per_s: np.ndarray
    """Frequencies, (n,)."""
    curves: np.ndarray
    """Complex eigenvalues, (n, S); each column follows one of them."""
    crossings: tuple[complex, ...]
    """Eigenvalues on the negative real axis."""


def eigenloci(scenario: Scenario, found: NetworkCertificate) -> Eigenloci:
    """Eigenvalues of a certificate's loop, of a box at its worst point.

    Parameters
    ----------
    scenario : Scenario
        Of the certificate.
    found : NetworkCertificate

    Raises
    ------
    InvalidValue
        A certificate without an equilibrium.
    """
    if found.certificate.margins is None:
        raise InvalidValue("plot", found.certificate.status.value, "a certificate with an equilibrium")
    changed: dict[Changed, float] = {}
    for group in found.flows:
        changed["rtt", group.name], changed["flows", group.name] = group.rtt_s, group.flows
    for link in found.links:
        changed["capacity", link.name] = link.capacity_bit_per_s
    scan = scanned(covered(NetworkLoop(network_equilibrium(network_of(scenario, changed).network))))
    locus = scan.locus()
    return Eigenloci(scan.angles / scan.loop.epoch, locus.curves, tuple(each.value for each in negative_real(locus)))
