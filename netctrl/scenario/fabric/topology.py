"""Topologies of data centres: a dumbbell, fat trees, leaf-spine."""

from __future__ import annotations

from typing import Any, Literal

from netctrl.errors import InvalidValue, checked_word
from netctrl.model.io.fields import Duration, Rate, duration, optional, rate, read_fields, whole
from netctrl.model.io.record_file import Record

__all__ = ["MAX_HOSTS", "Dumbbell", "FatTree", "Topology"]

MAX_HOSTS = 16_384
_MAX_PORTS = 1 << 20  # that an event of the packet kernel can name


def _link_delay(field: str, value: Any) -> float:
    delay = duration(field, value)
    if delay > 1.0:
        raise InvalidValue(field, value, "a link's delay from 1ns to 1s")
    return delay


class Dumbbell(Record, frozen=True, kw_only=True, tag_field="kind", tag="dumbbell"):
    """Senders at one switch, receivers at another, one link between them (Fig. 3.1 of the MPCC thesis: 4 and 1).

    Hosts 0 to senders − 1 send, the others receive; the bottleneck is the port of switch 0 towards switch 1.
    """

    senders: int = 4
    receivers: int = 1
    host_rate: Rate = 1e9
    link_rate: Rate | None = None
    """Between the switches; null: as the hosts'."""
    delay: Duration = 1e-6
    """Of each link, one way [s]."""

    def __post_init__(self) -> None:
        read_fields(self, senders=whole(1, MAX_HOSTS), receivers=whole(1, MAX_HOSTS), host_rate=rate)
        read_fields(self, link_rate=optional(rate), delay=_link_delay)
        if self.hosts > MAX_HOSTS:
            raise InvalidValue("senders", self.senders, f"at most {MAX_HOSTS} senders and receivers in all")

    @property
    def hosts(self) -> int:
        """Senders and receivers."""
        return self.senders + self.receivers


class FatTree(Record, frozen=True, kw_only=True, tag_field="kind", tag="fat-tree"):
    """Three levels: racks of hosts below a switch, pods of racks below aggregation switches, cores above all.

    Each rack's switch is linked to every aggregation switch of its pod, each of those to every core, or to its own
    share of them (`wiring`). The defaults are Fig. 5.5 of the MPCC thesis: 16 hosts, 4 racks, 4 aggregation and 2 core
    switches. At most 16,384 hosts, and at most 1,048,576 ports, two a link.
    """

    pods: int = 2
    racks: int = 2
    """Of a pod."""
    hosts_per_rack: int = 4
    aggregations: int = 2
    """Switches of a pod."""
    cores: int = 2
    """0: none, for a single pod."""
    wiring: Literal["full", "al-fares"] = "full"
    """Between aggregation and cores: all with all, or the cores in as many equal groups as a pod has aggregation
    switches, one group for each of them: one link from a core to a pod. Al-Fares et al., SIGCOMM 2008."""
    host_rate: Rate = 1e11
    fabric_rate: Rate = 4e11
    """Between switches."""
    delay: Duration = 1e-6
    """Of each link, one way [s]."""

    def __post_init__(self) -> None:
        read_fields(self, **dict.fromkeys(("pods", "racks", "hosts_per_rack", "aggregations"), whole(1, 256)))
        read_fields(self, cores=whole(0, 4096), host_rate=rate, fabric_rate=rate, delay=_link_delay)
        checked_word("wiring", self.wiring, ("full", "al-fares"))
        if self.cores == 0 and self.pods > 1:
            raise InvalidValue("cores", 0, f"1 or more: they link the {self.pods} pods")
        if self.wiring == "al-fares" and self.cores % self.aggregations:
            takes = f"a multiple of aggregations ({self.aggregations}) with the wiring al-fares"
            raise InvalidValue("cores", self.cores, takes)
        if not 2 <= self.hosts <= MAX_HOSTS:
            raise InvalidValue("hosts_per_rack", self.hosts_per_rack, f"2 to {MAX_HOSTS} hosts in all")
        if self.ports > _MAX_PORTS:
            raise InvalidValue("topology", f"{self.ports} ports", f"at most {_MAX_PORTS}, two a link")

    @classmethod
    def k_ary(cls, k: int, **link: Any) -> FatTree:
        """The fat tree of switches with k ports: k³/4 hosts, and as much capacity above each level as below it.

        Parameters
        ----------
        k : int
            Even, at most 40; 16 gives 1,024 hosts.
        **link
            `rate` of all links [bit/s], by default 1e11; `delay`.

        Raises
        ------
        InvalidValue
            An odd k, or too many hosts.

        Examples
        --------
        >>> FatTree.k_ary(16).hosts
        1024

        Notes
        -----
        Source: Al-Fares et al., SIGCOMM 2008, section 3.
        """
        half = whole(2, 40)("k", k) // 2
        if k % 2:
            raise InvalidValue("k", k, "an even number of ports of a switch")
        speed = link.pop("rate", 1e11)
        return cls(
            pods=k,
            racks=half,
            hosts_per_rack=half,
            aggregations=half,
            cores=half * half,
            wiring="al-fares",
            host_rate=speed,
            fabric_rate=speed,
            **link,
        )

    @classmethod
    def leaf_spine(cls, leaves: int, spines: int, hosts_per_leaf: int, **link: Any) -> FatTree:
        """Two levels: racks of hosts below leaves, each of which is linked to every spine; one pod without cores.

        Parameters
        ----------
        leaves, spines, hosts_per_leaf : int
        **link
            `host_rate`, `fabric_rate` [bit/s], `delay`.

        Examples
        --------
        >>> FatTree.leaf_spine(leaves=32, spines=8, hosts_per_leaf=32, host_rate="25Gbit", fabric_rate="100Gbit").hosts
        1024
        """
        return cls(pods=1, racks=leaves, hosts_per_rack=hosts_per_leaf, aggregations=spines, cores=0, **link)

    @property
    def hosts(self) -> int:
        """In all racks."""
        return self.pods * self.racks * self.hosts_per_rack

    @property
    def uplinks(self) -> int:
        """Of an aggregation switch, to cores."""
        return self.cores if self.wiring == "full" else self.cores // self.aggregations

    @property
    def ports(self) -> int:
        """Of hosts and switches."""
        return 2 * (self.hosts + self.pods * self.aggregations * (self.racks + self.uplinks))


Topology = Dumbbell | FatTree
