"""What the kernel that runs here has, found by trying: in a network namespace that is gone afterwards."""

from __future__ import annotations

import errno
import os

from netctrl.linux.kernel.netlink import ROOT, KernelRefusal, RouteSocket
from netctrl.linux.testbed.namespace import inside, make_namespace

__all__ = ["has_qdisc"]

_HANDLE = 0x7C010000


def has_qdisc(kind: str) -> bool:
    """Whether there is such a queueing discipline, built in or as a module that loads; needs root.

    Raises
    ------
    NetctrlError
        No privilege to make a namespace, or the kernel has none.
    """
    namespace = make_namespace()
    try:
        with inside(namespace), RouteSocket() as route:
            index = route.links()[0].index  # the loopback, which every namespace has
            try:
                route.add_qdisc(index, ROOT, _HANDLE, kind)
            except KernelRefusal as refusal:
                if refusal.number in (errno.EPERM, errno.EACCES):
                    raise
                return refusal.number != errno.ENOENT  # else it is there, and misses its options
            return True
    finally:
        os.close(namespace)
