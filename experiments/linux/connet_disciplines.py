"""What CONNET's bottlenecks may have in the place of a FIFO, and regulators that release at instants."""

from linux.testbed import Testbed

LINES = ("fifo", "cbq", "wfq")
PREMIUM_SHARE = 2_000_000
"""Of the premium class, as in the paper [bit/s]; it may borrow all that is free."""
_FOREVER = "100000"


def serve(bed: Testbed, link: str, discipline: str, premium_port: int, size: int, bucket: int) -> None:
    """A discipline within a link's tbf, which stays the wire: an HTB alone sends what a class has tokens for at once.

    - "cbq": HTB, which took CBQ's place in Linux, with a class for the premium flow and one for all others.
    - "wfq": SFQ, a queue for each flow's hash, served by turns of a packet; ALTQ's WFQ has hashes too.
    """
    if discipline == "fifo":
        return
    wire = bed.wires[link]
    source, device = wire.link.source, bed.interface(link)
    if discipline == "wfq":
        packets = str(wire.limit_bytes // size)
        options = ["quantum", str(size), "limit", packets, "depth", packets]
        bed.program(source, ["tc", "qdisc", "add", "dev", device, "parent", "1:1", "sfq", *options])
        return
    whole = round(wire.link.capacity)
    shape = f"ceil {whole}bit burst {bucket} cburst {bucket} quantum {size}"
    lines = [
        f"qdisc add dev {device} parent 1:1 handle 2: htb default 20",
        f"class add dev {device} parent 2: classid 2:1 htb rate {whole}bit {shape}",
    ]
    for number, rate in ((10, PREMIUM_SHARE), (20, whole - PREMIUM_SHARE)):
        lines.append(f"class add dev {device} parent 2:1 classid 2:{number} htb rate {rate}bit {shape}")
        lines.append(f"qdisc add dev {device} parent 2:{number} bfifo limit {wire.limit_bytes}")
    match = f"u32 match ip dport {premium_port} 0xffff"
    lines.append(f"filter add dev {device} parent 2: protocol ip prio 1 {match} flowid 2:10")
    bed.program(source, ["tc", "-batch", "-"], "\n".join(lines) + "\n")


def release_at_instants(bed: Testbed, link: str, between_s: tuple[float, float]) -> None:
    """Hold packets of a link until the next of instants with uniform distances from one to the other (netem); without
    distance, pass them at once."""
    slots = [f"{1e6 * each:g}us" for each in between_s]
    device = bed.interface(link)
    command = ["tc", "qdisc", "replace", "dev", device, "root", "netem", "limit", _FOREVER, "slot", *slots]
    bed.program(bed.wires[link].link.source, command)
