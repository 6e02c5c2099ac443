"""`netctrl linux pace`: pacing rates of a program's TCP connections or of a transfer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import as_json, report, say
from netctrl.cli.options import RATE, TIME, Kind, option, positional
from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE, format_quantity

if TYPE_CHECKING:
    from netctrl.linux.pacing.tcp import TcpRun
    from netctrl.model.law import PacingLaw

_BY_SIGNAL = 128


def _seconds(text: str) -> float:
    every = TIME.read(text)
    if not 1e-4 <= every <= 1.0:
        raise InvalidValue("", text, "0.1ms to 1s")
    return every


_INTERVAL = Kind("TIME", _seconds)


def pace(
    *program: Annotated[str, positional("PROGRAM", "program to run, with its arguments, after --")],
    design: Annotated[str | None, option("FILE", "a Design of pacing; its law sets the rates")] = None,
    cap: Annotated[float | None, RATE("fixed rate of TCP's payload in place of --design")] = None,
    to: Annotated[str | None, option("HOST:PORT", "instead of a program: send there as fast as TCP allows")] = None,
    hold_s: Annotated[float, TIME("with --to: duration of the transfer", "--for", default="10s")] = 10.0,
    congestion: Annotated[str | None, option("NAME", "with --to: congestion control, as in cubic")] = None,
    interval_s: Annotated[float, _INTERVAL("interval at which connections are read", default="1ms")] = 1e-3,
    dry_run: Annotated[bool, option("", "show the settings; start and send nothing")] = False,
    json: Annotated[bool, option("", "with --to or --dry-run: print one JSON object and nothing else")] = False,
) -> int:
    """Paces what a program sends over TCP, or a transfer of its own; what it receives, the other end paces.

    Examples
    --------
    netctrl linux pace --cap 5Mbit --dry-run -- curl -T file https://example.org/
    netctrl linux pace --cap 5Mbit --to 192.0.2.1:9000 --for 20s --dry-run
    """
    law = _law(design, cap)
    if bool(program) == (to is not None):
        got = "both" if program else None
        raise InvalidValue("PROGRAM", got, "either a program after -- or --to HOST:PORT")
    host, port = ("", 0) if to is None else _place(to)
    if dry_run:
        what = f"run {' '.join(program)}" if program else f"send to {to} for {hold_s:g} s"
        return say(as_json(_intent(law, what, interval_s)) if json else _intended(law, what, interval_s))
    if program:
        return _run(law, program, interval_s)

    from netctrl.linux.pacing.socket import paced_transfer

    run, rates = paced_transfer(law, host, port, hold_s, congestion=congestion, interval_s=interval_s)
    found = _summary(run, rates)
    return say(as_json(found) if json else _shown(found, str(to)))


def _law(design: str | None, cap: float | None) -> PacingLaw | float:
    if (design is None) == (cap is None):
        raise InvalidValue("design", None if design is None else "both", "either a Design file or --cap RATE")
    if cap is not None:
        return cap

    from netctrl.linux.pacing.socket import pacing_law
    from netctrl.model.design.design import read_design

    return pacing_law(read_design(str(design)))


def _place(to: str) -> tuple[str, int]:
    host, colon, port = to.rpartition(":")
    if not (colon and host and port.isdecimal() and 1 <= int(port) <= 65535):
        raise InvalidValue("to", to, "HOST:PORT, as in 10.0.0.2:5001")
    return host.strip("[]"), int(port)


def _run(law: PacingLaw | float, program: tuple[str, ...], every: float) -> int:
    """Exit status of the program; the report goes to stderr, since stdout belongs to the program."""
    from netctrl.linux.pacing.program import pace_program

    done = pace_program(law, program, interval_s=every)
    sys.stderr.write(
        f"netctrl: {done.sockets} TCP connections paced, {done.changes} rates set, {done.held} samples held\n"
    )
    if done.receivers:
        much = format_quantity(float(f"{done.received_bytes:.3g}"), "B")
        sys.stderr.write(
            f"warning: {done.receivers} of {done.sockets} TCP connections mostly received ({much}), which the other end"
            " paces: run the command there, or pace an upload\n"
        )
    return done.status if done.status >= 0 else _BY_SIGNAL - done.status


def _intent(law: PacingLaw | float, what: str, every: float) -> dict[str, Any]:
    if isinstance(law, float | int):
        first = most = law
        kind = "fixed"
    else:
        first, most, kind = law.start_rate_bit_per_s, law.max_rate_bit_per_s, type(law).__struct_config__.tag
    return {
        "would": what,
        "law": kind,
        "option": "SO_MAX_PACING_RATE",
        "first_rate_bit_per_s": first,
        "most_rate_bit_per_s": most,
        "first_bytes_per_s": round(first / BITS_PER_BYTE),
        "interval_s": every,
    }


def _intended(law: PacingLaw | float, what: str, every: float) -> str:
    found = _intent(law, what, every)
    rows = [
        ("law", str(found["law"])),
        ("first rate", f"{format_quantity(found['first_rate_bit_per_s'], 'bit/s')}, before a connection's slow start"),
        ("greatest rate", format_quantity(found["most_rate_bit_per_s"], "bit/s")),
        ("looks", f"every {format_quantity(every, 's')}"),
        ("set by", f"setsockopt(SOL_SOCKET, SO_MAX_PACING_RATE) on each TCP socket: {found['first_bytes_per_s']} B/s"),
    ]
    return report(f"would {what}", rows, ["nothing was started or set"])


def _summary(run: TcpRun, rates: list[float]) -> dict[str, Any]:
    import numpy as np

    seconds = float(run.times_s[-1] - run.times_s[0]) if len(run.times_s) > 1 else 0.0
    arrived, rtt = run.column("arrived_bytes"), run.column("rtt_s")
    rate = BITS_PER_BYTE * float(arrived[-1] - arrived[0]) / seconds if seconds > 0.0 else 0.0
    return {
        "seconds": seconds,
        "throughput_bit_per_s": rate,
        "mean_rtt_s": float(np.mean(rtt)),
        "p99_rtt_s": float(np.percentile(rtt, 99.0)),
        "least_rtt_s": float(np.min(rtt)),
        "last_rate_bit_per_s": rates[-1],
        "retransmitted": int(run.infos[-1].total_retrans),
    }


def _shown(found: dict[str, Any], to: str) -> str:
    rows = [
        ("throughput", format_quantity(found["throughput_bit_per_s"], "bit/s")),
        (
            "smoothed RTT",
            ", ".join(f"{name} {format_quantity(found[f'{name}_rtt_s'], 's')}" for name in ("least", "mean", "p99")),
        ),
        ("rate at the end", format_quantity(found["last_rate_bit_per_s"], "bit/s")),
        ("retransmitted", f"{found['retransmitted']} segments"),
    ]
    return report(f"sent to {to} for {found['seconds']:.3g} s", rows)
