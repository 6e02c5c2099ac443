"""Links whose law sets a marking probability each epoch: a program inside the kernel, in front of the link's queue.

The classifier is that of `netctrl linux mark`, and the law that of the register, printed as C++. The program has no
interpreter, so that a run depends on nothing of this machine but its compiler and C library (`guest/marker.cc`).
"""

from __future__ import annotations

import inspect
from functools import cache

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.kernel.build import build_program
from netctrl.kernel.plan import Program
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.law import QueueLaw, QueueRecord, Seen
from netctrl.laws.aqm.records import law_record
from netctrl.laws.codegen import cpp_function, cpp_law, cpp_record, helpers
from netctrl.laws.cpp import camel
from netctrl.linux.kernel import messages
from netctrl.linux.kernel.bpf import BpfFile, assemble
from netctrl.linux.marking import marking_program
from netctrl.scenario.links import Link

MARKS = np.dtype([("marked", "u8"), ("dropped", "u8"), ("probability", "f8")])
"""Row that a marker tells at each sample: packets so far, and its present probability."""
_SETTINGS, _COUNTERS, _PROGRAM = 10, 11, 12  # descriptors, as in marker.cc
_FLAGS = ("-std=c++17", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti", "-static")
# The C library's functions for processors without FMA, whose rounding is the same on all processors.
_SETTINGS_OF_LIBRARY = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"}


def marking_law(queue: QueueRecord) -> QueueLaw | None:
    """Law of a queue that a marker can run, as it acts by epochs; None: it can't.

    Raises
    ------
    InvalidValue
        An error of the rate that ARC measures, which is for simulators.
    """
    law = law_record(queue)
    if law is None or law.epoch is None or law.head is not None:
        return None
    if isinstance(queue, ArcQueue) and queue.rate_error is not None:
        raise InvalidValue("rate_error", queue.rate_error, "null: the marker measures the true rate")
    return law


def law_text(law: QueueLaw) -> str:
    """C++ of a law, as marker.cc includes it: `Law` with its `State` and `Next`, and how its parameters are read.

    Raises
    ------
    Refused
        The law isn't in the subset of `netctrl.laws.codegen`.
    """
    functions = helpers(law.step)
    names = {name: camel(f"law_{name}") for name in functions}
    state, seen, *_ = inspect.signature(law.step).parameters
    methods = {"Next": (law.step, {state: "const State&", seen: "const Seen&"})}
    count = len(law.parameters._fields)
    read = ", ".join(f"strtod(words[{k}], nullptr)" for k in range(count))
    parts = (
        "#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <cstdlib>",
        cpp_record("Seen", Seen),
        *(cpp_function(function, names) for function in functions.values()),
        cpp_law("Law", methods, law.parameters, law.state, names),
        f"const int LAW_PARAMETERS = {count};",
        f"inline Law read_law(char** words)\n{{\n    return Law{{{read}}};\n}}",
    )
    return "\n\n".join(parts) + "\n"


@cache
def _classifier() -> bytes:
    return assemble(marking_program(BpfFile(_SETTINGS), BpfFile(_COUNTERS)))


def attach_requests(interface: int) -> tuple[bytes, bytes]:
    """The two requests that put a marker in front of an interface's queues; the second one is the marker's own."""
    return messages.classify_departures(interface, _PROGRAM)


def marker_program(link: Link, interface: int, parent: int, packet: int, interval_s: float, samples: int) -> Program:
    """The program for a link, which is compiled where it is new.

    Parameters
    ----------
    link : Link
    interface : int
        Index of its interface.
    parent : int
        Class that has its queue.
    packet : int
        Size of a packet [byte of frames].
    interval_s : float
        Between two samples [s].
    samples : int
    """
    law = marking_law(link.queue)
    if law is None or law.epoch is None:
        raise InvalidValue("queue", link.queue, "one whose law acts by epochs")
    program = build_program("marker.cc", _FLAGS, {"law.h": law_text(law)})
    buffer = np.inf if link.buffer is None else link.buffer
    times = (round(each * 1e9) for each in (law.epoch(link.queue), interval_s))
    filter_ = attach_requests(interface)[1]
    words = (interface, parent, packet, *times, samples, _classifier().hex(), filter_.hex())
    parameters = (float(each).hex() for each in law.read(link.queue, packet, buffer))
    return Program((str(program), *map(str, words), *parameters), "/", _SETTINGS_OF_LIBRARY)
