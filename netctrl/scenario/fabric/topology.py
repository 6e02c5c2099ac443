"""Topologies of data centres: a dumbbell, fat trees, leaf-spine."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netctrl.core.errors import InvalidValue, checked_word
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    optional,
    packet_bytes,
    packet_bytes_or_none,
    rate,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.scenario.checks import check_ids, check_unused
from netctrl.scenario.fabric.flows import check_host_flows
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.fabric.watch import Watch
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import MAX_HOSTS

_MAX_SAMPLES = 50_000_000
_MAX_PORTS = 1 << 20  # limit of the packet kernel's events


def _link_delay(field: str, value: Any) -> float:
    delay = duration(field, value)
    if delay > 1.0:
        raise InvalidValue(field, value, "a link's delay from 1ns to 1s")
    return delay


class Packets(Record, frozen=True, kw_only=True):
    """Sizes on the wire [byte]: payload, header, and telemetry in both directions where the sender reads it."""

    payload: Size = 1000.0
    """Payload of a full packet [byte]."""
    header: Size = 48.0
    """Header of a packet [byte]."""
    ack: Size = 46.0
    """An acknowledgement without telemetry [byte]."""
    telemetry: Size = 52.0
    """Five hops of 10 bytes and a count of 2, which agrees with the MPCC thesis's exact times (1100 B a packet, 98 B an
    ACK)."""
    clock: Literal["nearest", "ns-3"] = "nearest"
    """Rounding of transmission times to whole nanoseconds: to the nearest, as in ns-3.37 and 3.44, or down, as in the
    ns-3 of the MPCC thesis (8799 ns for 1100 B at 1 Gbit/s)."""

    def __post_init__(self) -> None:
        read_fields(self, payload=packet_bytes, header=packet_bytes, ack=packet_bytes, telemetry=packet_bytes_or_none)
        checked_word("clock", self.clock, ("nearest", "ns-3"))


class Topology(Record, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all topologies: hosts, numbered from 0, and switches with FIFO ports."""

    default_interval: ClassVar[float] = 1e-6
    """Default sampling interval of queues [s]."""

    delay: Duration = 1e-6
    """Delay of each link, one way [s]."""
    buffer: Size | None = None
    """Buffer of each switch port [byte]; null: unlimited."""
    pfc: Pfc | None = None
    """Thresholds at which a switch pauses each incoming link."""
    flow_timeout: Duration | None = None
    """Time after its last packet for which a port counts a flow as active [s]. null: N + 2 times the longest round
    trip, with N the senders of the dumbbell or the incast, at least 4. Below (N − 1) round trips N is counted too low
    and queues burst; well above, small flows that have ended still count."""
    retransmission_timeout: Duration | None = None
    """Timeout after which a sender resends all unacknowledged data [s]; null: ten times the longest round trip, at
    least 1 ms."""
    packets: Packets = Packets()
    """Sizes of packets on the wire."""
    watch: Watch = Watch()
    """Flows and ports whose series are recorded."""

    def __post_init__(self) -> None:
        read_fields(self, delay=_link_delay, buffer=optional(size), pfc=optional(record(Pfc)))
        read_fields(self, flow_timeout=optional(duration), retransmission_timeout=optional(duration))
        read_fields(self, packets=record(Packets), watch=record(Watch))

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        raise NotImplementedError

    @property
    def rates(self) -> tuple[float, ...]:
        """Rates of links, those of hosts first [bit/s]."""
        raise NotImplementedError

    def check(self, scenario: Any) -> None:
        """InvalidValue for parts of a scenario that don't fit this topology or each other."""
        read_fields(scenario, flows=records(Flow))
        if scenario.control is not None:
            raise InvalidValue(
                "control", scenario.control, "null: the rates of a data centre's links can't be controlled"
            )
        check_unused(scenario, "packet_size", "initial_window", "min_rto", "warmup", "step")
        check_ids("flows", scenario.flows)
        check_host_flows(scenario.flows, self.hosts)
        self._check_sizes(scenario)

    def _check_sizes(self, scenario: Any) -> None:
        watch = self.watch
        if scenario.duration > 1000.0:
            raise InvalidValue("duration", scenario.duration, "at most 1000 s: times are whole nanoseconds")
        packet = (self.packets.payload + self.packets.header + self.packets.telemetry) * BITS_PER_BYTE
        if packet > 10.0 * min(self.rates):
            raise InvalidValue("network", "a slow link", "links that send a full packet within 10 s")
        for name, each, count in (("interval", scenario.interval, watch.ports), ("watch.bin", watch.bin, watch.flows)):
            if scenario.duration / each * max(1, len(count)) > _MAX_SAMPLES:
                raise InvalidValue(name, each, f"a longer interval, for at most {_MAX_SAMPLES} samples in total")


class Dumbbell(Topology, frozen=True, kw_only=True, tag="dumbbell"):
    """Senders at one switch, receivers at another, with one link between them (Fig. 3.1 of the MPCC thesis: 4 and 1).

    Hosts 0 to senders − 1 send, the others receive; the bottleneck is the port of switch 0 towards switch 1.
    """

    senders: int = 4
    """Hosts at the first switch."""
    receivers: int = 1
    """Hosts at the second switch."""
    host_rate: Rate = 1e9
    """Rate of each host's link [bit/s]."""
    link_rate: Rate | None = None
    """Rate of the link between the switches; null: that of the hosts' links."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, senders=whole(1, MAX_HOSTS), receivers=whole(1, MAX_HOSTS), host_rate=rate)
        read_fields(self, link_rate=optional(rate))
        if self.hosts > MAX_HOSTS:
            raise InvalidValue("senders", self.senders, f"at most {MAX_HOSTS} senders and receivers in total")

    @property
    def hosts(self) -> int:
        """Number of senders and receivers."""
        return self.senders + self.receivers

    @property
    def rates(self) -> tuple[float, ...]:
        """Rates of hosts' links and of the link between the switches [bit/s]."""
        return self.host_rate, self.host_rate if self.link_rate is None else self.link_rate


class FatTree(Topology, frozen=True, kw_only=True, tag="fat-tree"):
    """Three levels: racks of hosts below a switch, pods of racks below aggregation switches, core switches above all.

    Each rack's switch is linked to every aggregation switch of its pod. Each aggregation switch is linked to every core
    switch, or to its own share of them (`wiring`). The defaults are Fig. 5.5 of the MPCC thesis: 16 hosts, 4 racks, 4
    aggregation and 2 core switches. At most 16,384 hosts and 1,048,576 ports, two per link.
    """

    pods: int = 2
    """Pods of racks."""
    racks: int = 2
    """Racks per pod."""
    hosts_per_rack: int = 4
    """Hosts of a rack."""
    aggregations: int = 2
    """Aggregation switches per pod."""
    cores: int = 2
    """Core switches; 0 is possible for a single pod."""
    wiring: Literal["full", "al-fares"] = "full"
    """Links between aggregation and core switches. full: all with all. al-fares: the cores form as many equal groups as
    a pod has aggregation switches, one group for each, so that a core has one link to a pod (Al-Fares et al., SIGCOMM
    2008)."""
    host_rate: Rate = 1e11
    """Rate of each host's link [bit/s]."""
    fabric_rate: Rate = 4e11
    """Rate of links between switches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, **dict.fromkeys(("pods", "racks", "hosts_per_rack", "aggregations"), whole(1, 256)))
        read_fields(self, cores=whole(0, 4096), host_rate=rate, fabric_rate=rate)
        checked_word("wiring", self.wiring, ("full", "al-fares"))
        if self.cores == 0 and self.pods > 1:
            raise InvalidValue("cores", 0, f"at least 1, to link the {self.pods} pods")
        if self.wiring == "al-fares" and self.cores % self.aggregations:
            takes = f"a multiple of aggregations ({self.aggregations}) with wiring al-fares"
            raise InvalidValue("cores", self.cores, takes)
        if not 2 <= self.hosts <= MAX_HOSTS:
            raise InvalidValue("hosts_per_rack", self.hosts_per_rack, f"2 to {MAX_HOSTS} hosts in total")
        if self.ports > _MAX_PORTS:
            raise InvalidValue("network", f"{self.ports} ports", f"at most {_MAX_PORTS}, two per link")

    @classmethod
    def k_ary(cls, k: int, **link: Any) -> FatTree:
        """Fat tree of switches with k ports: k³/4 hosts, with as much capacity above each level as below it.

        Parameters
        ----------
        k : int
            Even number of ports per switch, at most 40; 16 gives 1,024 hosts.
        **link
            `rate` of all links [bit/s], by default 1e11; `delay` and other fields of all topologies.

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
        """Two levels: racks of hosts below leaf switches, each linked to every spine; one pod without cores.

        Parameters
        ----------
        leaves, spines, hosts_per_leaf : int
        **link
            `host_rate`, `fabric_rate` [bit/s], `delay` and other fields of all topologies.

        Examples
        --------
        >>> FatTree.leaf_spine(leaves=32, spines=8, hosts_per_leaf=32, host_rate="25Gbit", fabric_rate="100Gbit").hosts
        1024
        """
        return cls(pods=1, racks=leaves, hosts_per_rack=hosts_per_leaf, aggregations=spines, cores=0, **link)

    @property
    def hosts(self) -> int:
        """Number of hosts in all racks."""
        return self.pods * self.racks * self.hosts_per_rack

    @property
    def rates(self) -> tuple[float, ...]:
        """Rates of hosts' links and of links between switches [bit/s]."""
        return self.host_rate, self.fabric_rate

    @property
    def uplinks(self) -> int:
        """Number of links from an aggregation switch to cores."""
        return self.cores if self.wiring == "full" else self.cores // self.aggregations

    @property
    def ports(self) -> int:
        """Number of ports of hosts and switches."""
        return 2 * (self.hosts + self.pods * self.aggregations * (self.racks + self.uplinks))


TOPOLOGIES = (Dumbbell, FatTree)
