"""Egress classifier as a direct-action filter of clsact, for kernels before 6.6.

Unlike a link (`netctrl.linux.kernel.bpf.attach_egress`) it stays when its process dies. As a marker's probability is in
force for a limited time only, a remaining filter marks nothing; the next one replaces it.
"""

from __future__ import annotations

import errno
from typing import Self

from netctrl.linux.kernel.bpf import Program
from netctrl.linux.kernel.messages import EGRESS, classify_departures, stop_classifying
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket

__all__ = ["EgressFilter"]

_HANDLE, _PRIORITY = 1, 0x7C01  # netctrl's own


class EgressFilter:
    """Filter on an interface, until `close`; clsact is removed with it if created with it and otherwise unused.

    Raises
    ------
    KernelRefusal
        No clsact or cls_bpf in this kernel, no privilege, or another queue in clsact's place.
    """

    def __init__(self, program: Program, interface: int) -> None:
        self._interface, self._made = interface, False
        make, put = classify_departures(interface, program.fd, _HANDLE, _PRIORITY)
        self._remove, self._unmake = stop_classifying(interface, _HANDLE, _PRIORITY)
        with RouteSocket() as route:
            if not any(each.kind == "clsact" for each in route.qdiscs(interface)):
                route.request(f"put clsact on interface {interface}", make)
                self._made = True
            try:
                route.request(f"put a bpf filter on what leaves interface {interface}", put)
            except KernelRefusal:
                self._remove_clsact(route)
                raise
        self._open = True

    def _remove_clsact(self, route: RouteSocket) -> None:
        if self._made and not any(route.filters(self._interface, way) for way in (EGRESS, EGRESS - 1)):
            route.request(f"remove clsact of interface {self._interface}", self._unmake)
            self._made = False

    def close(self) -> None:
        """Remove the filter; an interface that is gone has removed it already. Repeated calls do nothing."""
        if not self._open:
            return
        self._open = False
        with RouteSocket() as route:
            try:
                route.request(f"remove the bpf filter of interface {self._interface}", self._remove)
                self._remove_clsact(route)
            except KernelRefusal as refusal:
                if refusal.number not in (errno.ENODEV, errno.ENOENT, errno.EINVAL):
                    raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
