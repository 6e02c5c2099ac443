"""Queue laws for a program's netctrl-laws.h, printed from Python, each in a queue disc of ns-3.

A queue disc has an attribute for each of its law's parameters, named as in Python (target_queue -> TargetQueue), with
the law's default value for packets of 1000 bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
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
from netctrl.laws.l4s.dualpi2 import (
    DualPi2Queue,
    DualPi2State,
    classic_is_next,
    dualpi2_state,
    fresh_credit,
    judge_packet,
    spend_credit,
    update_dualpi2,
)
from netctrl.laws.record import (
    Grid,
    Matrix,
    Numbers,
    Vector,
    WholeGrid,
    WholeNumbers,
    field_types,
    fields_of,
    is_record,
)
from netctrl.laws.tcp.sender import TcpSender, TcpWindow
from netctrl.laws.window.law import Path, WindowLaw
from netctrl.ns3.cpp import MARKER, real, string

_STANDARD = {"array": "std::array", "cstdint": "int64_t", "string": "std::string", "vector": "std::vector"}
"""Headers of the standard library, by the names used from them."""
_PACKET, _BUFFER = 1000.0, 500e3
"""Packet size for the defaults of attributes [byte]."""


def attribute(field: str) -> str:
    """Name of a parameter as an attribute of ns-3: target_queue -> TargetQueue."""
    name = camel(field)
    return name[0].upper() + name[1:]


def queue_disc(law: QueueLaw) -> str:
    """ns-3's type name of a law's queue disc."""
    return f"netctrl::{_stem(law)}QueueDisc"


def laws_header(laws: Iterable[QueueLaw], *, dual: bool = False, scalable: Iterable[TcpSender] = ()) -> str:
    """Text of netctrl-laws.h for these laws, each once, in the order of their names.

    Parameters
    ----------
    laws : iterable of QueueLaw
    dual : bool
        Whether DualPI2 is among the queues.
    scalable : iterable of TcpSender
        Scalable senders, each a congestion control of ns-3.
    """
    used = sorted({law.name: law for law in laws}.values(), key=lambda law: law.name)
    functions = {name: each for law in used for name, each in helpers(law.step).items()}
    for each in _DUAL if dual else ():
        functions |= helpers(each)
    names = {name: attribute(name) for name in functions}
    parts = [cpp_function(function, names) for function in functions.values()]
    for law in used:
        state, seen, *_ = inspect.signature(law.step).parameters
        takes = {state: "const State&", seen: "const Seen&"}
        parts += [
            cpp_law(f"{_stem(law)}Law", {"Next": (law.step, takes)}, law.parameters, law.state, names),
            _disc(law),
        ]
    includes = ['"netctrl-law-queue-disc.h"']
    if dual:
        includes.append('"netctrl-dual-queue-disc.h"')
        parts += [cpp_record(DualPi2State.__name__, DualPi2State, zeros=True)]
        names |= {each.__name__: attribute(each.__name__) for each in _DUAL} | {DualPi2State.__name__: "DualPi2State"}
        parts += [cpp_function(each, names) for each in _DUAL]
        parts.append(_dual_disc())
    senders = list(scalable)
    if senders:
        includes.append('"netctrl-scalable-window.h"')
    for sender in senders:
        parts += _scalable_window(sender)
    about = "Laws of queues, and a queue disc of ns-3 around each: printed from the Python that netctrl simulates."
    return _header("LAWS", about, includes, parts)


def window_laws_header(laws: Iterable[WindowLaw]) -> str:
    """Text of netctrl-window-laws.h: the data of a data centre's senders, their laws, and `WithLaw` by name."""
    used = sorted({law.name: law for law in laws}.values(), key=lambda law: law.name)
    methods = [method for law in used for method in (law.step, law.sent or _nothing_sent)]
    functions = {name: each for method in methods for name, each in helpers(method).items() if each not in methods}
    names = {name: attribute(name) for name in functions}
    types = records_of([*functions.values(), *methods])
    own = [kind for law in used for kind in (law.parameters, law.state)]
    names |= {each: each for each, kind in types.items() if kind not in own}
    parts = [cpp_record(each, kind, names=names) for each, kind in types.items() if each in names]
    parts += [fields_visited(Path), *(cpp_function(function, names) for function in functions.values())]
    state, path = {"state": "const State&"}, {"path": "const Path&"}
    rows = {"table": "const std::vector<double>&", "memory": "std::vector<double>&"}
    cases = []
    for law in used:
        name = f"{_stem(law)}Law"
        takes = {
            "Next": (law.step, state | {"seen": "const Acknowledged&"} | path | rows),
            "Sent": (law.sent or _nothing_sent, state | {"now": "double", "count": "double"} | path),
        }
        parts += [cpp_law(name, takes, law.parameters, law.state, names), fields_visited(law.parameters, name)]
        cases += [
            f'    if (name == "{law.name}")',
            "    {",
            f"        with({name}{{}});",
            "        return true;",
            "    }",
        ]
    head = ["/// Calls `with` with the law of this name, whose parameters aren't set yet; whether it is here."]
    head += ["template <class With>", "bool", "WithLaw(const std::string& name, With with)", "{"]
    parts.append("\n".join([*head, *cases, "    return false;", "}"]))
    about = (
        "What senders see, and their laws: printed from the Python that netctrl simulates. Bytes, bit/s, nanoseconds."
    )
    return _header("WINDOW_LAWS", about, [], parts)


def _nothing_sent(state: Any, now: float, count: float, path: Path) -> Any:
    """What leaves changes nothing."""
    return state


def functions_header(
    name: str, about: str, functions: Iterable[Any], *includes: str, visited: Iterable[Any] = ()
) -> str:
    """Text of netctrl-NAME.h with functions, their callees, and records: htcp_backoff becomes HtcpBackoff.

    Parameters
    ----------
    name, about
        Of the header.
    functions : iterable of function
    *includes : str
        Headers that it needs.
    visited : iterable of type
        Records whose numbers are read by their names.
    """
    texts = [f'"{each}"' for each in includes]
    parts = [*_functions(functions), *map(fields_visited, visited)]
    return _header(name.upper().replace("-", "_"), about, texts, parts)


def records_header(name: str, about: str, records: Iterable[Any]) -> str:
    """Text of netctrl-NAME.h with records whose fields are read by their names."""
    kinds = list(records)
    parts = [text for kind in kinds for text in (cpp_record(kind.__name__, kind, zeros=True), fields_visited(kind))]
    return _header(name.upper().replace("-", "_"), about, [], parts)


def tcp_windows_header(laws: Iterable[TcpSender]) -> str:
    """Text of netctrl-tcp-windows.h: windows of TCP, each in a namespace, and `MakeWindow` by name."""
    parts, cases = [], []
    for law in sorted({law.name: law for law in laws}.values(), key=lambda law: law.name):
        space = f"windows::{law.name.replace('-', '_').replace('+', 'p')}"
        parts += [f"namespace {space}\n{{", *_functions((law.grow, law.cut)), f"}} // namespace {space}"]
        kind = f"PrintedWindow<{space}::{law.state.__name__}, {space}::Acked>"
        functions = ", ".join(f"{space}::{attribute(each.__name__)}" for each in (law.grow, law.cut))
        cases += [f'    if (law == "{law.name}")', "    {", f"        return CreateObject<{kind}>(trips, {functions});"]
        cases += ["    }"]
    start = ["/// The window of this name, for a flow with these round trips; null: it isn't here."]
    start += ["inline Ptr<TcpCongestionOps>", "MakeWindow(const std::string& law, RoundTrips& trips)", "{"]
    parts.append("\n".join([*start, *cases, "    return nullptr;", "}"]))
    return _header(
        "TCP_WINDOWS", "Windows of TCP: printed from the Python that netctrl simulates.", ['"netctrl-window.h"'], parts
    )


def fields_visited(kind: Any, name: str = "") -> str:
    """C++ function that calls `visit` with the name in Python and the value of each field of a record.

    Fields are numbers, conditions, arrays, or records in turn, whose names follow a dot; others are left out. `name` is
    that of the record in C++, its own without.
    """
    calls = []
    for field, one in field_types(kind).items():
        place = f"row.{camel(field)}"
        if is_record(one):
            inner = f'[&](const std::string& name, auto& value) {{ visit("{field}." + name, value); }}'
            calls.append(f"    ForEach({place}, {inner});")
        elif one in (float, int, bool, Numbers, WholeNumbers, Vector, Matrix):
            calls.append(f'    visit("{field}", {place});')
        elif one in (Grid, WholeGrid):
            calls.append(f'    visit("{field}", {place}.values);')
    takes = "{}& row, Visit visit" if calls else "{}&, Visit"
    head = ["template <class Visit>", "void", f"ForEach({takes.format(name or kind.__name__)})", "{"]
    return "\n".join([*head, *calls, "}"])


def _functions(functions: Iterable[Any]) -> list[str]:
    """Whole numbers, records and functions of the subset, with their dependencies."""
    found: dict[str, Any] = {}
    for each in functions:
        found |= helpers(each) | {each.__name__: plain(each)}
    types = records_of(found.values())
    names = {each: attribute(each) for each in found} | {each: each for each in types}
    constants = whole_constants(found.values())
    names |= {each: f"k{attribute(each.lower())}" for each in constants}
    parts = [cpp_record(each, kind, names=names, zeros=_is_state(each, kind)) for each, kind in types.items()]
    parts += [cpp_function(each, names) for each in found.values()]
    text = " ".join(parts)
    used = [f"constexpr int64_t {names[each]} = {value};" for each, value in constants.items() if names[each] in text]
    return ["\n".join(used), *parts] if used else parts


def _is_state(name: str, kind: Any) -> bool:
    return name.endswith("State") or issubclass(kind, TcpWindow)


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
    """Queue disc of a law, with its attributes."""
    name = f"{_stem(law)}QueueDisc"
    usual = zip(law.parameters._fields, law.read(law.record(), _PACKET, _BUFFER), strict=True)
    about = f"/// A queue disc that runs {_stem(law)}Law."
    lines = _disc_start(name, "LawQueueDisc", about, dict(usual), field_texts(law.parameters))
    members = ", ".join(f"m_{camel(field)}" for field in law.parameters._fields)
    lines += ["  private:", "    double Act(const Seen& seen) override", "    {"]
    lines += [f"        m_state = {_stem(law)}Law{{{members}}}.Next(m_state, seen);"]
    lines += ["        return m_state.probability;", "    }", ""]
    lines += [f"    double m_{camel(field)};" for field in law.parameters._fields]
    lines += [f"    {_stem(law)}Law::State m_state;", "};", "", f"NS_OBJECT_ENSURE_REGISTERED({name});"]
    return "\n".join(lines)


def _disc_start(name: str, parent: str, about: str, usual: Mapping[str, float], texts: Mapping[str, str]) -> list[str]:
    """First lines of a queue disc's class: its attributes, by their names in Python, with their usual values."""
    lines = [about, f"class {name} final : public {parent}", "{", "  public:"]
    lines += [
        "    static ns3::TypeId GetTypeId()",
        "    {",
        "        using namespace ns3;",
        "        static TypeId tid =",
    ]
    lines += [f'            TypeId("netctrl::{name}")', f"                .SetParent<{parent}>()"]
    lines += ['                .SetGroupName("TrafficControl")', f"                .AddConstructor<{name}>()"]
    for field, value in usual.items():
        lines += [
            f'                .AddAttribute("{attribute(field)}",',
            f"                              {string(texts[field] or field)},",
            f"                              DoubleValue({real(value)}),",
            f"                              MakeDoubleAccessor(&{name}::m_{camel(field)}),",
            "                              MakeDoubleChecker<double>())",
        ]
    lines[-1] += ";"
    return [*lines, "        return tid;", "    }", ""]


_DUAL = (fresh_credit, classic_is_next, spend_credit, update_dualpi2, judge_packet)
"""Functions of DualPI2's law."""
DUAL_DISC = "netctrl::DualPi2QueueDisc"
"""ns-3's type name of DualPI2's queue disc."""
_CHANGING = 3
"""Fields of its state that change; the others are attributes."""


def dual_attributes(queue: DualPi2Queue, packet_size: float) -> dict[str, float]:
    """Attributes of DualPI2's queue disc, by their names in Python."""
    values = zip(fields_of(DualPi2State), dualpi2_state(queue, packet_size), strict=True)
    return dict(list(values)[_CHANGING:])


def _dual_disc() -> str:
    """Queue disc of DualPI2."""
    usual = dual_attributes(DualPi2Queue(), _PACKET)
    about = "/// DualPI2: a queue disc that runs these functions."
    lines = _disc_start("DualPi2QueueDisc", "DualQueueDisc", about, usual, field_texts(DualPi2State))
    sets = [f"        m_state.{camel(field)} = m_{camel(field)};" for field in usual]
    methods = {
        "void Start() override": [*sets, "        Idle();"],
        "void Idle() override": ["        m_state.credit = FreshCredit(m_state.weight, m_state.packet);"],
        "bool ClassicNext(bool low, bool classic) const override": [
            "        return ClassicIsNext(m_state.credit, low, classic);"
        ],
        "void Spend(bool classic, double size) override": [
            "        m_state.credit = SpendCredit(m_state.credit, m_state.weight, classic, size);"
        ],
        "bool Steps(double found) const override": ["        return found >= m_state.stepBytes;"],
        "bool Late(double waited) const override": ["        return waited > m_state.step;"],
        "int64_t Judge(bool low, bool capable, bool late, double backlog, double draw) const override": [
            "        return JudgePacket(m_state, low, capable, late, backlog, draw);"
        ],
        "double Update(double delay) override": [
            "        UpdateDualpi2(m_state, delay);",
            "        return m_state.baseProbability * m_state.baseProbability;",
        ],
    }
    lines.append("  private:")
    for head, body in methods.items():
        lines += [f"    {head}", "    {", *body, "    }", ""]
    lines += [f"    double m_{camel(field)};" for field in usual]
    lines += ["    DualPi2State m_state;", "};", "", "NS_OBJECT_ENSURE_REGISTERED(DualPi2QueueDisc);"]
    return "\n".join(lines)


def scalable_sender(law: TcpSender) -> str:
    """ns-3's type name of a scalable sender's congestion control."""
    return f"netctrl::{law.name.capitalize()}"


def _scalable_window(law: TcpSender) -> list[str]:
    """Functions of a scalable sender in a namespace, and a congestion control of ns-3 around them."""
    space, name = law.name, law.name.capitalize()
    methods = {"Grow": law.grow, "Cut": law.cut, "Mark": law.mark, "Echo": law.echo}
    functions = {name: each for name, each in methods.items() if each is not None}
    parts = [f"namespace {space}\n{{", *_functions(functions.values())]
    aliases = [f"    using State = {law.state.__name__};"]
    calls = [
        f"    static constexpr auto {method} = &{space}::{attribute(each.__name__)};"
        for method, each in functions.items()
    ]
    parts += ["\n".join(["struct Law", "{", *aliases, *calls, "};"]), f"}} // namespace {space}"]
    return [
        *parts,
        "\n".join(
            [
                f"class {name} final : public ScalableWindow<{space}::Law>",
                "{",
                "  public:",
                "    static TypeId GetTypeId()",
                "    {",
                f'        static TypeId tid = TypeId("netctrl::{name}")',
                "                                .SetParent<TcpDctcp>()",
                '                                .SetGroupName("Internet")',
                f"                                .AddConstructor<{name}>();",
                "        return tid;",
                "    }",
                "",
                "    std::string GetName() const override",
                "    {",
                f'        return "{name}";',
                "    }",
                "",
                "    Ptr<TcpCongestionOps> Fork() override",
                "    {",
                f"        return CopyObject<{name}>(this);",
                "    }",
                "};",
                "",
                f"NS_OBJECT_ENSURE_REGISTERED({name});",
            ]
        ),
    ]
