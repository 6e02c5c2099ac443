"""Features of the running kernel, found by trying them in a temporary network namespace."""

from __future__ import annotations

import errno
import os

from netctrl.linux.kernel.messages import ROOT
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.namespace import inside, make_namespace

__all__ = ["has_qdisc"]

_HANDLE = 0x7C010000


def has_qdisc(kind: str) -> bool:
    """Whether the kernel has a queueing discipline, built in or as a loadable module; needs root.

    Raises
    ------
    NetctrlError
        No privilege to create a namespace, or a kernel without namespaces.
    """
    namespace = make_namespace()
    try:
        with inside(namespace), RouteSocket() as route:
            index = route.links()[0].index  # the loopback of every namespace
            try:
                route.add_qdisc(index, ROOT, _HANDLE, kind)
            except KernelRefusal as refusal:
                if refusal.number in (errno.EPERM, errno.EACCES):
                    raise
                return refusal.number != errno.ENOENT  # other errors: it exists, and its options are missing
            return True
    finally:
        os.close(namespace)
