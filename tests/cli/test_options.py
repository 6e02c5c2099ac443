"""Options: what becomes of their text, and that the help shows the defaults of the public functions."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Iterator
from typing import Any

import pytest
from cyclopts import Token
from cyclopts.argument import Argument

import netctrl
from netctrl.certificates.certify import subject_of
from netctrl.cli.help import default_of
from netctrl.cli.options import JOBS, RATE, SIZE, TIME, Kind, given, kind, option_name, ranged, whole
from netctrl.core.errors import InvalidValue
from netctrl.core.register import VERBS
from netctrl.core.units import parse_duration

COMMANDS = {
    "design arc": netctrl.arc,
    "design connet": netctrl.connet,
    "design ecn": netctrl.ecn_design,
    "design hftrac": netctrl.hftrac,
    "design mpcc": netctrl.mpcc,
    "design pacing": netctrl.pacing,
    "certify pie": netctrl.certify,
    "identify": netctrl.identify,
}
OURS = {"design hftrac": {"interval_s": 0.01, "n_jobs": -1}}
"""Defaults of a command that the function doesn't have, or has another of."""
LAWS = {
    "pie": {},
    "fq_pie": {},
    "docsis-pie": {},
    "dualpi2": {},
    "pi2": {},
    "red": {"limit_bytes": 400_000, "min_bytes": 30_000, "max_bytes": 90_000},
    "wred": {"min_bytes": 30_000, "max_bytes": 90_000, "max_percent": 100},
    "dctcp": {"k_packets": 65.0},
    "dcqcn": {},
}
"""Law of `certify` -> parameters that it needs."""


def shown(words: str) -> Iterator[tuple[str, str, Argument]]:
    """Name, text and argument of each default that a command's help shows for a public function's argument."""
    verb, _, name = words.partition(" ")
    app = importlib.import_module(VERBS.module_of(verb)).app
    for argument in (app[name] if name else app).assemble_argument_collection():
        if default_of(argument) and callable(argument.parameter.show_default):
            yield argument.field_info.name, default_of(argument), argument


def read(argument: Argument, text: str) -> Any:
    """What becomes of an option's text."""
    convert = argument.parameter.converter
    return convert(None, [Token(value=text)]) if callable(convert) else text


def same(read_value: Any, value: Any) -> bool:
    """Whether two values are one to rounding (a law's own too), a single value standing for both ends of a range."""
    if isinstance(read_value, tuple) and not isinstance(value, tuple):
        value = (value, value)
    return read_value == value or math.isclose(float(read_value), float(value), rel_tol=1e-7)


@pytest.mark.parametrize("words", COMMANDS)
def test_the_defaults_in_the_help_are_the_functions(words):
    signature, found = inspect.signature(COMMANDS[words]).parameters, list(shown(words))
    assert found
    for name, text, argument in found:
        ours = OURS.get(words, {})
        if name in ours:
            assert argument.field_info.default == ours[name] == read(argument, text)
        elif name in signature:
            assert same(read(argument, text), signature[name].default), (name, text)


@pytest.mark.parametrize("law", LAWS)
def test_the_defaults_in_the_help_are_the_laws(law):
    subject = subject_of(law, LAWS[law])
    for name, text, argument in shown(f"certify {law}"):
        if argument.field_info.default is not None:
            assert same(argument.field_info.default, read(argument, text)), (name, text)
        elif name in subject.parameters:
            assert same(read(argument, text), subject.parameters[name]), (name, text)
    assert {name for name, *_ in shown(f"certify {law}")} & set(subject.parameters)


@pytest.mark.parametrize("law", ["pie", "docsis-pie", "dualpi2", "pi2", "red"])
def test_the_defaults_of_a_queues_design_are_those_of_its_certificate(law):
    known = {name: read(argument, text) for name, text, argument in shown(f"certify {law}")}
    for name, text, argument in shown(f"design {law}"):
        if name in known:
            assert read(argument, text) == known[name], (name, text)
            assert argument.field_info.default in (None, known[name])


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        ("rtt_s", "rtt"),
        ("max_rate_bit_per_s", "max-rate"),
        ("packet_size_bytes", "packet-size"),
        ("window_packets", "window"),
        ("alpha_per_packet", "alpha"),
        ("past_rtts", "past-rtts"),
        ("n_jobs", "n-jobs"),
    ],
)
def test_an_option_is_its_parameter_without_the_unit(parameter, name):
    assert option_name(parameter) == name


@pytest.mark.parametrize(
    ("of", "text", "value"),
    [
        (RATE, "10Mbit", 1e7),
        (TIME, "20ms", 0.02),
        (SIZE, "2kB", 2000.0),
        (JOBS, "-1", -1),
        (JOBS, "12", 12),
        (whole("N", "a number"), "7", 7),
        (ranged("TIME", parse_duration, "a time"), "20ms:1s", (0.02, 1.0)),
        (ranged("TIME", parse_duration, "a time"), "1s", (1.0, 1.0)),
        (kind("N", float, "a number"), "1e3", 1000.0),
    ],
)
def test_a_text_is_read_as_its_kind(of: Kind, text, value):
    assert of.read(text) == value


@pytest.mark.parametrize(
    ("of", "text", "takes"),
    [
        (RATE, "10", "a rate from 1bit"),
        (JOBS, "0", "a number of processes"),
        (JOBS, "1.0", "a number of processes"),
        (whole("N", "a number", least=1), "0", "a number"),
        (whole("N", "a number", most=9), "10", "a number"),
        (whole("N", "a number"), "-1", "a number"),
        (whole("N", "a number"), "٣", "a number"),
        (ranged("TIME", parse_duration, "a time"), "2s:1s", "a time; this range is empty"),
        (ranged("TIME", parse_duration, "a time"), "2", "a time"),
        (kind("N", float, "a number"), "x", "a number"),
    ],
)
def test_a_text_of_another_kind_is_refused_with_what_is_taken(of: Kind, text, takes):
    with pytest.raises(InvalidValue) as refused:
        of.read(text)
    assert refused.value.got == text
    assert refused.value.takes.startswith(takes)


def test_what_is_not_given_is_not_passed_on():
    assert given({"a": 1, "b": None, "c": False, "d": 0.0, "wanted": 2}, "wanted") == {"a": 1, "c": False, "d": 0.0}
