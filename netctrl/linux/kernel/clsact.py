"""Egress classifier as a direct-action filter of clsact, for kernels before 6.6.

Unlike a link (`netctrl.linux.kernel.bpf.attach_egress`) it stays when its process dies. As a marker's probability is in
force for a limited time only, a remaining filter marks nothing; the next one replaces it.
"""

from __future__ import annotations

import errno
import struct
from types import TracebackType
from typing import Self

from netctrl.linux.kernel.attributes import attribute
from netctrl.linux.kernel.bpf import Program
from netctrl.linux.kernel.netlink import INGRESS, KernelRefusal, RouteSocket

__all__ = ["EgressFilter"]

_CLSACT, _EGRESS = 0xFFFF0000, 0xFFFFFFF3
_FD, _NAME, _FLAGS = 6, 7, 8  # TCA_BPF_*
_DIRECT_ACTION = 1
_PRIORITY, _HANDLE = 0x7C01, 1  # netctrl's own


class EgressFilter:
    """Filter on an interface, until `close`; clsact is removed with it if created with it and otherwise unused.

    Raises
    ------
    KernelRefusal
        No clsact or cls_bpf in this kernel, no privilege, or another queue in clsact's place.
    """

    def __init__(self, program: Program, interface: int, name: str = "netctrl") -> None:
        self._interface = interface
        self._made = False
        with RouteSocket() as route:
            if not self._there(route):
                route.add_qdisc(interface, INGRESS, _CLSACT, "clsact")
                self._made = True
            options = attribute(_FD, struct.pack("=I", program.fd)) + attribute(_NAME, name.encode() + b"\0")
            options += attribute(_FLAGS, struct.pack("=I", _DIRECT_ACTION))
            try:
                route.add_filter(interface, _EGRESS, _HANDLE, _PRIORITY, "bpf", options)
            except KernelRefusal:
                self._remove_clsact(route)
                raise
        self._open = True

    def _there(self, route: RouteSocket) -> bool:
        return any(each.kind == "clsact" for each in route.qdiscs(self._interface))

    def _remove_clsact(self, route: RouteSocket) -> None:
        ways = (_EGRESS, _EGRESS - 1)
        if self._made and not any(route.filters(self._interface, way) for way in ways):
            route.delete_qdisc(self._interface, INGRESS, _CLSACT)
            self._made = False

    def close(self) -> None:
        """Remove the filter; an interface that is gone has removed it already. Repeated calls do nothing."""
        if not self._open:
            return
        self._open = False
        with RouteSocket() as route:
            try:
                route.delete_filter(self._interface, _EGRESS, _HANDLE, _PRIORITY, "bpf")
                self._remove_clsact(route)
            except KernelRefusal as refusal:
                if refusal.number not in (errno.ENODEV, errno.ENOENT, errno.EINVAL):
                    raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
