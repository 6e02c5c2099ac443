"""What CONNET's bottlenecks may have in the place of a FIFO, and regulators that release at instants."""

from __future__ import annotations

from linux.hftrac_bed import program

from netctrl.linux.testbed.bed import Testbed

__all__ = ["LINES", "release_at_instants", "serve"]

LINES = ("fifo", "cbq", "wfq")
PREMIUM_SHARE = 2_000_000
"""Of the premium class, as in the paper [bit/s]; it may borrow all that is free."""
_FOREVER = "100000"


def serve(bed: Testbed, link: str, discipline: str, premium_port: int, size: int, bucket: int) -> None:
    """A discipline at a link, whose rate and buffer are the link's own.

    - "cbq": HTB, which took CBQ's place in Linux, with a class for the premium flow and one for all others.
    - "wfq": SFQ, a queue for each flow's hash, served by turns of a packet; ALTQ's WFQ has hashes too.
    """
    if discipline == "fifo":
        return
    wire = bed.wire(link)
    source, device = wire.link.source, bed.interface(link)
    if discipline == "wfq":
        packets = str(wire.limit_bytes // size)
        options = ["quantum", str(size), "limit", packets, "depth", packets]
        program(bed, source, ["tc", "qdisc", "add", "dev", device, "parent", "1:1", "sfq", *options])
        return
    whole = round(wire.link.capacity)
    shape = ["ceil", f"{whole}bit", "burst", str(bucket), "cburst", str(bucket), "quantum", str(size)]
    lines = [
        f"qdisc del dev {device} root",
        f"qdisc add dev {device} root handle 1: htb default 20",
        f"class add dev {device} parent 1: classid 1:1 htb rate {whole}bit {' '.join(shape)}",
    ]
    for number, rate in ((10, PREMIUM_SHARE), (20, whole - PREMIUM_SHARE)):
        lines.append(f"class add dev {device} parent 1:1 classid 1:{number} htb rate {rate}bit {' '.join(shape)}")
        lines.append(f"qdisc add dev {device} parent 1:{number} bfifo limit {wire.limit_bytes}")
    match = f"u32 match ip dport {premium_port} 0xffff"
    lines.append(f"filter add dev {device} parent 1: protocol ip prio 1 {match} flowid 1:10")
    program(bed, source, ["tc", "-batch", "-"], "\n".join(lines) + "\n")


def release_at_instants(bed: Testbed, link: str, between_s: tuple[float, float]) -> None:
    """Hold packets of a link until the next of instants with uniform distances from one to the other (netem)."""
    slots = [f"{1e6 * each:g}us" for each in between_s]
    device = bed.interface(link)
    command = ["tc", "qdisc", "replace", "dev", device, "root", "netem", "limit", _FOREVER, "slot", *slots]
    program(bed, bed.wire(link).link.source, command)
