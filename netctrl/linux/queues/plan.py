"""Plan of the changes that desired queues need on this machine: read, checked and shown, without privileges."""

from __future__ import annotations

from dataclasses import dataclass

from netctrl.core.errors import InvalidValue, did_you_mean
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.linux.export.records import ETHERNET_HEADER, InterfaceQueue, QueuePlan, TcFifo, TokenBucket
from netctrl.linux.kernel.messages import Link, handle_text
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.objects import LEAF_HANDLE, OWN_HANDLE, Unrestorable, desired_objects, egress, saved
from netctrl.linux.queues.record import Entry

_ETHERNET, _LOOPBACK = 1, 772  # ARPHRD_*
_OWN = (OWN_HANDLE, LEAF_HANDLE)


@dataclass(frozen=True, slots=True)
class Plan:
    """Desired queues with the present ones."""

    desired: QueuePlan
    entries: tuple[Entry, ...]
    """Entries of the interfaces in `desired`, in its order."""

    def rows(self) -> list[tuple[str, str]]:
        """For each interface the present and the future queue, with the kernel's rounding, for people."""
        pairs = zip(self.entries, self.desired.interfaces, strict=True)
        return [(entry.interface, f"{_before(entry)}  ->  {_after(entry, queue)}") for entry, queue in pairs]


def plan_queues(socket: RouteSocket, desired: QueuePlan, *, replace: bool = False) -> Plan:
    """Compare desired queues with the machine; changes nothing, and needs no privilege.

    Parameters
    ----------
    replace : bool
        Whether to replace a root queue of others, if it can be restored exactly.

    Raises
    ------
    InvalidValue
        An unknown interface, one with another address (a plan for another machine), a burst shorter than the
        interface's frames, or a root queue of others.
    KernelRefusal
        The kernel didn't answer.
    """
    links = {link.name: link for link in socket.links()}
    with socket.one_look():
        return Plan(desired, tuple(_entry(socket, links, each, replace) for each in desired.interfaces))


def _entry(socket: RouteSocket, links: dict[str, Link], desired: InterfaceQueue, replace: bool) -> Entry:
    link = _link(links, desired)
    frame = link.mtu + (ETHERNET_HEADER if link.kind in (_ETHERNET, _LOOPBACK) else 0)
    if isinstance(desired.queue, TokenBucket) and desired.queue.burst < frame:
        takes = f"at least {frame} bytes on {link.name}, the longest frame: TBF drops longer ones than its burst"
        raise InvalidValue("burst", desired.queue.burst, takes)
    taken = [each for each in egress(socket.qdiscs(link.index)) if each.handle in _OWN]
    if taken:
        takes = f"an interface without {taken[0].name}, which has netctrl's handle but is not in the record"
        remedy = f"run `restore` if it is applied, else `tc qdisc del dev {link.name} root`"
        raise InvalidValue("interface", link.name, f"{takes}: {remedy}")
    try:
        before, kind = saved(socket, link.index)
    except Unrestorable as reason:
        takes = f"an interface whose queues netctrl can restore, but {reason}; remove them yourself first"
        raise InvalidValue("interface", link.name, takes) from None
    if before and not replace:
        takes = f"an interface with the kernel's default queue, but it has {before[0].name}"
        raise InvalidValue("interface", link.name, f"{takes}; --replace replaces it until `restore`")
    return Entry(
        interface=link.name,
        index=link.index,
        address=link.address,
        before=before,
        before_kind=kind,
        desired=desired_objects(desired),
    )


def _link(links: dict[str, Link], desired: InterfaceQueue) -> Link:
    link = links.get(desired.interface)
    if link is None:
        meant = did_you_mean(desired.interface, links)
        raise InvalidValue("interface", desired.interface, f"one of {', '.join(sorted(links))}{meant}")
    if desired.address is not None and desired.address != link.address:
        takes = (
            f"the one with address {desired.address} (here: {link.address or 'none'}); is the plan for another machine?"
        )
        raise InvalidValue("interface", desired.interface, takes)
    return link


def _before(entry: Entry) -> str:
    if not entry.before:
        return f"{entry.before_kind or 'nothing'} (default)"
    root, *others = entry.before
    more = f" and {len(others)} more" if others else ""
    return f"{root.name}{more}, restored at the end"


def _after(entry: Entry, queue: InterfaceQueue) -> str:
    desired = queue.queue
    if isinstance(desired, TcFifo):
        return f"{entry.desired[0].kind} {handle_text(OWN_HANDLE)}, limit {desired.limit} {desired.unit}"
    shaped = entry.desired[1] if len(entry.desired) > 1 else entry.desired[0]
    rate = format_quantity(getattr(shaped.shown, "rate", 0) * BITS_PER_BYTE, "bit/s")
    return f"{shaped.kind} {handle_text(OWN_HANDLE)}, {rate}, burst {desired.burst} B, limit {desired.limit} B"
