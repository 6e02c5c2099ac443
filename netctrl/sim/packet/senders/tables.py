"""Senders of a scenario as the packet engine's tables: what they have to send, their laws, states, settings."""

from __future__ import annotations

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.core.register import TCP_SENDERS
from netctrl.laws.rate.records import RATE_LAWS, is_l4s, rate_record, window_of
from netctrl.laws.rate.rows import ALLOWED_WIDTH
from netctrl.laws.tcp.rows import EXACT, SCALABLE, WINDOWS
from netctrl.laws.tcp.sender import SLOW_STARTS
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web, Writes
from netctrl.sim.packet.state import CLASSIC_ECN, FLOW, NO_ECN, SCALABLE_ECN, SESSION


def set_sender(row: np.ndarray, group: Flow) -> None:
    """Which laws a connection has; what hears no marks can't be marked."""
    window, rate = window_of(group.sender), rate_record(group.sender)
    row[FLOW["law"]] = -1 if window is None else WINDOWS.index(window)
    try:
        ours = is_l4s(group.sender)  # reads the file of a Design
    except InvalidValue as error:
        raise InvalidValue(f"flows.{group.id}.sender.{error.argument}", error.got, error.takes) from None
    row[FLOW["exact"]] = ours or window in EXACT
    scalable = SCALABLE_ECN if ours or window in SCALABLE else CLASSIC_ECN
    row[FLOW["ecn"]] = scalable if group.hears_marks else NO_ECN
    if window is not None and (own := TCP_SENDERS[window].slow_start) is not None:
        row[FLOW["slow_start"]] = SLOW_STARTS.index(group.slow_start or own)
    elif group.slow_start is not None:
        raise InvalidValue(f"flows.{group.id}.slow_start", group.slow_start, f"nothing: {window} has its own")
    if rate is not None:
        row[FLOW["pacer"]] = 1 + next(k for k, each in enumerate(RATE_LAWS) if each.record is type(rate))


def rate_tables(scenario: Scenario, flow: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is allowed, states and settings of rate senders, whose rows `flow` is told; what is drawn is by the seed."""
    laws = {g: RATE_LAWS[number - 1].law() for g, number in set(map(tuple, flow[:, _LAW_OF])) if number}
    made: list[tuple[np.ndarray, int]] = []
    for f in np.flatnonzero(flow[:, FLOW["pacer"]]):
        group = scenario.flows[flow[f, FLOW["group"]]]
        flow[f, FLOW["paced"]] = len(made)
        random = np.random.default_rng(np.random.SeedSequence(scenario.seed, spawn_key=(1 << 21, int(f))))
        try:
            made.append(laws[flow[f, FLOW["group"]]].read(rate_record(group.sender), random))
        except InvalidValue as error:
            raise InvalidValue(f"flows.{group.id}.sender.{error.argument}", error.got, error.takes) from None
    places = max((places for _, places in made), default=0)
    settings = np.zeros((len(made), max((len(row) for row, _ in made), default=0)))
    for row, (values, _) in zip(settings, made, strict=True):
        row[: len(values)] = values
    return np.zeros((len(made), ALLOWED_WIDTH)), np.zeros((len(made), places)), settings


def set_data(row: np.ndarray, group: Flow, payload: int) -> None:
    """What a flow has to send in segments of `payload` bytes and how, and how its receiver takes and answers it."""
    row[FLOW["last_bytes"]] = payload
    row[FLOW["delays_acks"]], row[FLOW["offload"]] = group.delayed_acks, group.offload
    if group.receive_window is not None:
        row[FLOW["most"]] = max(int(group.receive_window) // payload, 1)
    if group.piece is None:
        return
    size = round(group.piece)
    segments = (size + payload - 1) // payload
    row[FLOW["bytes"]], row[FLOW["last_bytes"]] = size, size - (segments - 1) * payload
    if isinstance(group.offers, Writes):
        row[FLOW["write"]], row[FLOW["size"]] = segments, 0
        row[FLOW["interval"]] = round(group.offers.interval * _NS)
    else:
        row[FLOW["size"]] = segments


def session_row(group: Flow, number: int, first: int, stop: int) -> np.ndarray:
    """Of a session of the Web, or of a program that writes, which has no objects; `first`: row of its first flow."""
    row = np.zeros(len(SESSION), dtype=np.int64)
    row[SESSION["group"]], row[SESSION["first"]], row[SESSION["stop"]] = number, first, stop
    if isinstance(group.offers, Web):
        row[SESSION["objects"]] = group.offers.objects_per_page
    return row


def web_row(group: Flow) -> tuple[float, float, float, float]:
    """What a group's sessions draw from."""
    web = group.offers
    if not isinstance(web, Web):
        return 0.0, 1.0, 0.0, 1.0
    return web.least_object, web.pareto_shape, web.max_object, web.think_time


_NS = 1e9
_LAW_OF = [FLOW["group"], FLOW["pacer"]]
