"""Flows: how many, what they offer, which sender carries it, over which links and when; and hosts of senders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.laws.rate.records import Sender, rate_record, read_sender, reads_marks, scheme_of, sender_name, window_of
from netctrl.laws.tcp.sender import SLOW_STARTS
from netctrl.laws.window.records import law_of
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    Span,
    duration,
    flag,
    instant,
    label,
    number,
    one_of,
    optional,
    packet_bytes,
    packet_bytes_or_none,
    rate,
    read_fields,
    record,
    shares,
    size,
    span,
    texts,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.model.trace import check_columns
from netctrl.scenario.fabric.pfc import Pfc
from netctrl.scenario.tcp_aqm.offers import DATAGRAMS, MAX_HOSTS, Demand, Offers, Web, Writes, read_offers


class Host(Record, frozen=True, kw_only=True):
    """Each flow of a group has its own port in front of its path.

    A full packet has the scenario's `packet_size` bytes, including `header` and `telemetry`.
    """

    rate: Rate | None = None
    """Rate of the port, the law's line rate [bit/s]; null: that of the first link of the path."""
    delay: Duration | None = None
    """Delay to the path, one way [s]; null: half of the part of `rtt` not covered by links. The rest is on the way
    back."""
    header: Size = 48.0
    """Header of a packet [byte]."""
    ack: Size = 46.0
    """Size of an acknowledgement [byte]."""
    telemetry: Size = 52.0
    """Telemetry in packets and their acknowledgements, where the law reads it [byte]."""
    pfc: Pfc | None = None
    """Thresholds at which the node behind the port pauses it."""
    flow_timeout: Duration | None = None
    """Time after its last packet for which a link counts a flow as active [s]; null: N + 2 times the longest round
    trip, with N flows that cross it, at least 4."""
    retransmission_timeout: Duration | None = None
    """Timeout without progress after which a flow resends all unacknowledged data [s]; null: ten times the longest
    round trip, at least 1 ms."""

    def __post_init__(self) -> None:
        read_fields(
            self,
            rate=optional(rate),
            delay=optional(instant),
            header=packet_bytes,
            ack=packet_bytes,
            telemetry=packet_bytes_or_none,
        )
        read_fields(self, pfc=optional(record(Pfc)), flow_timeout=optional(duration))
        read_fields(self, retransmission_timeout=optional(duration))


MAX_FLOWS = 100_000


def _hosts(field: str, value: Any) -> tuple[int, ...]:
    reader = whole(0, MAX_HOSTS - 1, "a host's number, or a list of them,")
    hosts = tuple(reader(field, each) for each in (value if isinstance(value, list | tuple | range) else (value,)))
    if not hosts:
        raise InvalidValue(field, value, "at least one host")
    return hosts


class Flow(Record, frozen=True, kw_only=True, tag_field="kind", tag="flow"):
    """Like flows over the same links: what they offer × the sender that carries it × where and when.

    Raises
    ------
    InvalidValue
        A value out of bounds, or parts that don't fit each other, such as a window law for a stream of packets.

    Examples
    --------
    >>> import netctrl
    >>> netctrl.Flow(sender="cubic", rtt="20ms:80ms", count=5).rtt
    (0.02, 0.08)
    >>> voice = netctrl.Flow(id="voice", offers={"kind": "stream", "rate": "64kbit"})
    >>> voice.offers.rate, voice.answered
    (64000.0, False)
    """

    id: str = ""
    """Unique among the flows of a scenario; empty: the name of the sender, or the kind of `offers` without one."""
    count: int = 1
    """How many flows, or sessions of the web."""
    offers: Offers = None
    """What each flow has to send: null, endless data; a size, after which it ends; or a table whose kind is web,
    writes, stream, bursts or demand; in a data centre sizes or incast."""
    sender: Sender = None
    """A window law's name (reno, cubic, htcp, dctcp, vegas, prague), bbr, a data centre's law (hpcc, timely, dcqcn,
    mpcc, fixed), or a table: kind paced, cap, fast, or a data centre's law with its parameters. Packets of senders that
    don't use marks can't be marked. null: reno; streams, bursts and demands have none."""
    path: tuple[str, ...] = ()
    """Ids of the links that the data crosses, in order; empty: the only link of the scenario."""
    split: dict[str, float] | None = None
    """Id of a link -> share that takes it of what comes to its source: several ways, of which `path` is the main one;
    null: all take `path`. Packets without acknowledgements go one by one, others flow by flow."""
    ack_path: tuple[str, ...] = ()
    """Ids of the links that the acknowledgements cross; empty: uncongested links."""
    source: Any = None
    """Number of the host of a data centre that sends data of one size, or a list of them: one flow each; null: any."""
    target: Any = None
    """Number of the host that receives all flows, or a list with one host for each flow; null: any."""
    rtt: Span = (0.0, 0.0)
    """Round-trip propagation delay of the whole path [s]; a range is sampled uniformly; 0: that of the links that it
    crosses. Without effect on datagrams."""
    rtt_noise: Duration = 0.0
    """Mean of the exponential time by which round trips that the sender measures are longer than they are [s]. Fluid of
    single flows over one link only."""
    start: Span = (0.0, 0.0)
    """Start times [s]; a range is sampled uniformly."""
    stop: Span | None = None
    """Stop times [s]; null: never."""
    ecn: bool | None = None
    """Whether packets can be marked; otherwise they are dropped. null: they can, except at a `bottleneck`."""
    host: Host | None = None
    """Host of a data-centre law; null: `Host` with its defaults."""
    priority: int = 0
    """Priority in `prio` queues, where 0 is first, and class in `cbq` queues."""
    weight: float = 1.0
    """Weight of each flow in `drr` and `wfq` queues."""
    packet_size: Size | None = None
    """Size of full data packets, headers counted [byte]; null: the scenario's, its greatest. Packet engine only."""
    receive_window: Size | None = None
    """Most that receivers take beyond what came in order, less what came out of order since [byte]; null: any. A
    round trip carries no more. Linux's grows ahead of the congestion window, up to this (half of `tcp_rmem`'s last)."""
    delayed_acks: bool = False
    """Whether receivers acknowledge each second packet only, the last one after 40 ms, as Linux's do (packet engine;
    the kernel always does): at once first, out of order, at marks and at the end of what was written."""
    offload: bool = False
    """Whether paced senders send a millisecond's data at once, two packets at least and 64 kB at most, as Linux does
    with segmentation offload (packet engine)."""
    slow_start: Literal["standard", "hystart", "hystart++"] | None = None
    """What ends slow start before a loss: standard, nothing; hystart, as in Linux; hystart++, as in RFC 9406. null: the
    law's, hystart for cubic and standard for others. vegas and ledbat++ have their own. Packet engine; the kernel has
    hystart for cubic only, and standard for all of its flows or none."""
    expected: Demand | None = None
    """What laws of link rates assume that all these flows send together; null: their offers, if these are a demand."""
    classes: int | None = None
    """Number of classes of equal size into which the fluid merges the flows, each with one RTT and one start; null:
    each flow is a class. Other engines run `count` flows."""

    def __post_init__(self) -> None:
        read_fields(self, count=whole(1, MAX_FLOWS), offers=read_offers, path=texts, ack_path=texts, ecn=optional(flag))
        read_fields(self, rtt=span, start=span, stop=optional(span), host=optional(record(Host)), rtt_noise=instant)
        read_fields(self, source=optional(_hosts), target=optional(_hosts))
        read_fields(self, split=optional(shares), expected=optional(record(Demand)))
        weight = number("a weight from 0.01 to 100", at_least=0.01, at_most=100.0)
        read_fields(self, priority=whole(0, 63), weight=weight, packet_size=optional(size))
        read_fields(self, receive_window=optional(size), delayed_acks=flag, offload=flag)
        read_fields(self, slow_start=optional(one_of(*SLOW_STARTS)))
        fewer = whole(1, self.count, "a whole number of classes, at most the number of flows,")
        read_fields(self, classes=optional(fewer))
        self._read_sender()
        read_fields(self, id=lambda field, value: label(field, self.kind if value == "" else value))
        if self.stop is not None and self.stop[0] <= self.start[1]:
            raise InvalidValue("stop", self.stop, f"times after the last start ({self.start[1]:g} s)")
        if isinstance(self.offers, Demand) and self.offers.rates is not None:
            check_columns("offers.rates", self.offers.rates, self.count)
        if self.split is not None and not (isinstance(self.offers, Demand) or (self.bulk and self.host is None)):
            raise InvalidValue("split", "several ways", "nothing but for demands and for data without a host's port")
        for name in ("packet_size", "classes", "receive_window", "delayed_acks", "offload", "slow_start"):
            on_pages = isinstance(self.offers, Web) and name in ("packet_size", "classes", "receive_window")
            if getattr(self, name) not in (None, False) and (on_pages or not self.answered):
                raise InvalidValue(name, getattr(self, name), "nothing but for flows of data")
        if scheme_of(self.sender) is not None:
            if isinstance(self.offers, Writes):
                raise InvalidValue("offers", "writes", "a size, web, sizes or incast with a data centre's sender")
            for name in ("receive_window", "delayed_acks", "offload"):
                if getattr(self, name) not in (None, False):
                    raise InvalidValue(name, getattr(self, name), "nothing for a data centre's sender")
        if self.offload and rate_record(self.sender) is None:
            raise InvalidValue("offload", True, f"false: nothing paces flows of {self.kind}")
        if self.slow_start is not None and window_of(self.sender) is None:
            raise InvalidValue("slow_start", self.slow_start, f"nothing: {self.kind} has no window law")

    def _read_sender(self) -> None:
        if self.answered:
            read_fields(self, sender=lambda field, value: "reno" if value is None else read_sender(field, value))
        elif self.sender is not None:
            raise InvalidValue("sender", sender_name(self.sender), "nothing: nothing acknowledges these packets")
        if self.host is not None and (self.sender is None or scheme_of(self.sender) is None):
            takes = f"nothing: flows of {self.kind} have no host port"
            raise InvalidValue("host", "a host", takes)

    @property
    def kind(self) -> str:
        """Name of the sender, or of what is offered without one."""
        return sender_name(self.sender) if self.answered else str(self.offers.__struct_config__.tag)

    @property
    def answered(self) -> bool:
        """Whether packets are acknowledged."""
        return not isinstance(self.offers, DATAGRAMS)

    @property
    def hears_marks(self) -> bool:
        """Whether packets can be marked because `ecn` lets them and the sender reads marks; others are dropped."""
        scheme = scheme_of(self.sender)
        if scheme is None:
            reads = window_of(self.sender) is not None or reads_marks(self.sender)
        else:
            reads = law_of(scheme).marking is not None
        return self.answered and bool(self.ecn) and reads

    @property
    def bulk(self) -> bool:
        """Whether it is data, endless or of one size, that a sender has from the start."""
        return self.offers is None or isinstance(self.offers, float)

    @property
    def size(self) -> float | None:
        """Data of each flow [byte], after which it ends; None: more, or it ends otherwise."""
        return self.offers if isinstance(self.offers, float) else None

    @property
    def piece(self) -> float | None:
        """Data that each flow has to send at once [byte]: all of it, or a write; None: it has no such size."""
        return self.offers.size if isinstance(self.offers, Writes) else self.size

    @property
    def demand(self) -> Demand | None:
        """The demand that laws of link rates assume; None: they know of none."""
        return self.offers if isinstance(self.offers, Demand) else self.expected

    @property
    def both_ways(self) -> tuple[str, ...]:
        """Ids of the links that a packet and its acknowledgement cross; without `ack_path` those of `path`, twice."""
        return (*self.path, *(self.ack_path or self.path))


@dataclass(frozen=True, slots=True, eq=False)
class FlowDraw:
    """The flows of one group, one row each; all arrays have the same length.

    Parameters
    ----------
    rtt_s : ndarray
        Round-trip propagation delay [s].
    start_s, stop_s : ndarray
        Start and stop times [s]; stop is inf for endless flows.
    flows : ndarray
        Number of flows in a row; 1 except for merged classes.
    """

    rtt_s: np.ndarray
    start_s: np.ndarray
    stop_s: np.ndarray
    flows: np.ndarray
