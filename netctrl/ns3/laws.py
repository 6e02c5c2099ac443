"""netctrl-laws.h: the laws of a program's queues, printed from Python, and a queue disc of ns-3 around each.

A queue disc has an attribute for each of its law's parameters, by its name in Python (target_queue -> TargetQueue),
with the value of the law's defaults for packets of 1000 bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from netctrl.laws.aqm.law import QueueLaw
from netctrl.laws.codegen import (
    cpp_function,
    cpp_law,
    cpp_record,
    field_texts,
    helpers,
    plain,
    records_of,
    whole_constants,
)
from netctrl.laws.cpp import camel
from netctrl.laws.window.law import Path, WindowLaw
from netctrl.ns3.cpp import MARKER, real, string

__all__ = ["attribute", "functions_header", "laws_header", "queue_disc", "window_law_header"]

_STANDARD = {"array": "std::array", "cstdint": "int64_t", "vector": "std::vector"}
"""Headers of the library, by what is used of them."""
_PACKET, _BUFFER = 1000.0, 500e3
"""For the defaults of attributes [byte]."""


def attribute(field: str) -> str:
    """A parameter's name as an attribute of ns-3: target_queue -> TargetQueue."""
    name = camel(field)
    return name[0].upper() + name[1:]


def queue_disc(law: QueueLaw) -> str:
    """The type of a law's queue disc, as ns-3 knows it."""
    return f"netctrl::{_stem(law)}QueueDisc"


def laws_header(laws: Iterable[QueueLaw]) -> str:
    """The text of netctrl-laws.h for these laws, each once, in the order of their names."""
    used = sorted({law.name: law for law in laws}.values(), key=lambda law: law.name)
    functions = {name: each for law in used for name, each in helpers(law.step).items()}
    names = {name: attribute(name) for name in functions}
    parts = [cpp_function(function, names) for function in functions.values()]
    for law in used:
        state, seen, *_ = inspect.signature(law.step).parameters
        takes = {state: "const State&", seen: "const Seen&"}
        parts += [
            cpp_law(f"{_stem(law)}Law", {"Next": (law.step, takes)}, law.parameters, law.state, names),
            _disc(law),
        ]
    about = "Laws of queues, and a queue disc of ns-3 around each: printed from the Python that netctrl simulates."
    return _header("LAWS", about, ['"netctrl-law-queue-disc.h"'], parts)


def window_law_header(law: WindowLaw) -> str:
    """The text of netctrl-window-law.h: what a data centre's senders see, and the law that they run, `Law`."""
    sent = law.sent or _nothing_sent
    functions = {
        name: each for method in (law.step, sent) for name, each in helpers(method).items() if each is not sent
    }
    names = {name: attribute(name) for name in functions}
    types = records_of([*functions.values(), law.step, sent])
    names |= {each: each for each, kind in types.items() if kind not in (law.parameters, law.state)}
    parts = [cpp_record(each, kind, names=names) for each, kind in types.items() if each in names]
    parts += [cpp_function(function, names) for function in functions.values()]
    state, path = {"state": "const State&"}, {"path": "const Path&"}
    rows = {"table": "const std::vector<double>&", "memory": "std::vector<double>&"}
    methods = {
        "Next": (law.step, state | {"seen": "const Acknowledged&"} | path | rows),
        "Sent": (sent, state | {"now": "double", "count": "double"} | path),
    }
    name = f"{_stem(law)}Law"
    parts.append(cpp_law(name, methods, law.parameters, law.state, names))
    parts.append(f"using Law = {name};")
    about = (
        "What senders see, and their law: printed from the Python that netctrl simulates. Bytes, bit/s, nanoseconds."
    )
    return _header("WINDOW_LAW", about, [], parts)


def _nothing_sent(state: Any, now: float, count: float, path: Path) -> Any:
    """What leaves changes nothing."""
    return state


def functions_header(name: str, about: str, functions: Iterable[Any], *includes: str) -> str:
    """The text of netctrl-NAME.h with functions, those that they call, and records: htcp_backoff is HtcpBackoff."""
    found: dict[str, Any] = {}
    for each in functions:
        found |= helpers(each) | {each.__name__: plain(each)}
    types = records_of(found.values())
    names = {each: attribute(each) for each in found} | {each: each for each in types}
    constants = whole_constants(found.values())
    names |= {each: f"k{attribute(each.lower())}" for each in constants}
    parts = [cpp_record(each, kind, names=names, zeros=each.endswith("State")) for each, kind in types.items()]
    parts += [cpp_function(each, names) for each in found.values()]
    text = " ".join(parts)
    used = [f"constexpr int64_t {names[each]} = {value};" for each, value in constants.items() if names[each] in text]
    parts = ["\n".join(used), *parts] if used else parts
    return _header(name.upper().replace("-", "_"), about, [f'"{each}"' for each in includes], parts)


def _header(name: str, about: str, includes: list[str], parts: list[str]) -> str:
    guard = f"NETCTRL_{name}_H"
    text = "\n\n".join(parts)
    standard = ["algorithm", "cmath", *(each for each, used in _STANDARD.items() if used in text)]
    start = [MARKER, f"// {about}", "", f"#ifndef {guard}", f"#define {guard}", ""]
    start += [*(f"#include {each}" for each in includes), *([""] if includes else [])]
    start += [*(f"#include <{each}>" for each in sorted(standard)), "", "namespace netctrl", "{", ""]
    body = [text, ""] if parts else []
    return "\n".join([*start, *body, "} // namespace netctrl", "", f"#endif // {guard}", ""])


def _stem(law: QueueLaw | WindowLaw) -> str:
    return "".join(word.capitalize() for word in law.name.split("-"))


def _disc(law: QueueLaw) -> str:
    """The queue disc of a law, with its attributes."""
    name = f"{_stem(law)}QueueDisc"
    usual = law.read(law.record(), _PACKET, _BUFFER)
    texts = field_texts(law.parameters)
    lines = [
        f"/// A queue disc that runs {_stem(law)}Law.",
        f"class {name} final : public LawQueueDisc",
        "{",
        "  public:",
    ]
    lines += [
        "    static ns3::TypeId GetTypeId()",
        "    {",
        "        using namespace ns3;",
        "        static TypeId tid =",
    ]
    lines += [f'            TypeId("netctrl::{name}")', "                .SetParent<LawQueueDisc>()"]
    lines += ['                .SetGroupName("TrafficControl")', f"                .AddConstructor<{name}>()"]
    for field, value in zip(law.parameters._fields, usual, strict=True):
        lines += [
            f'                .AddAttribute("{attribute(field)}",',
            f"                              {string(texts[field] or field)},",
            f"                              DoubleValue({real(value)}),",
            f"                              MakeDoubleAccessor(&{name}::m_{camel(field)}),",
            "                              MakeDoubleChecker<double>())",
        ]
    lines[-1] += ";"
    members = ", ".join(f"m_{camel(field)}" for field in law.parameters._fields)
    lines += ["        return tid;", "    }", "", "  private:", "    double Act(const Seen& seen) override", "    {"]
    lines += [f"        m_state = {_stem(law)}Law{{{members}}}.Next(m_state, seen);"]
    lines += ["        return m_state.probability;", "    }", ""]
    lines += [f"    double m_{camel(field)};" for field in law.parameters._fields]
    lines += [f"    {_stem(law)}Law::State m_state;", "};", "", f"NS_OBJECT_ENSURE_REGISTERED({name});"]
    return "\n".join(lines)
