"""`netctrl linux mark`: ARC on an interface, until a signal or for a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import as_json, report, say
from netctrl.cli.linux.common import LOG, UNIT, USER, Stopped, logged, stoppable
from netctrl.cli.options import TIME, option, positional
from netctrl.core.units import BITS_PER_BYTE, format_quantity

if TYPE_CHECKING:
    from netctrl.linux.marking import MarkSample


class _Sums:
    """Running time averages of the samples, without storing them."""

    def __init__(self) -> None:
        self.epochs, self.seconds, self.queue, self.probability, self.bytes = 0, 0.0, 0.0, 0.0, 0

    def add(self, sample: MarkSample) -> None:
        self.epochs += 1
        self.seconds += sample.elapsed_s
        self.queue += sample.backlog_bytes * sample.elapsed_s
        self.probability += sample.probability * sample.elapsed_s
        self.bytes += sample.arrived_bytes


def mark(
    file: Annotated[str, positional("CONFIG", "a marking file (netctrl.marking/1), as `export tc` writes it")],
    /,
    *,
    duration_s: Annotated[float | None, TIME("stop after this time; by default at a signal")] = None,
    unit: Annotated[bool, UNIT] = False,
    user: Annotated[str, USER] = "netctrl",
    log: Annotated[str | None, LOG] = None,
    json: Annotated[bool, option("", "print the summary as one JSON object and nothing else")] = False,
) -> int:
    """Marks packets, and prints a summary at the end.

    Examples
    --------
    netctrl linux mark router/arc.marking.json
    netctrl linux mark router/arc.marking.json --duration 60s --json
    """
    from netctrl.linux.export.shaper import read_marking_config
    from netctrl.linux.log import event
    from netctrl.linux.marking import mark as run

    config, sums = read_marking_config(file), _Sums()
    if unit:
        from netctrl.cli.linux.common import program
        from netctrl.linux.systemd import mark_unit

        return say(mark_unit(config, program(file, user)))
    with logged(log), stoppable() as stop:

        def wait(left: float) -> bool:
            try:
                stop.wait(lambda: False, left)
            except Stopped:
                return True
            return stop.number != 0  # also if there was no time to wait

        event("marking", interface=config.interface, epoch_s=config.law.epoch_s)
        last = run(config, wait=wait, duration_s=duration_s, heard=sums.add)
        event("marked", interface=config.interface, epochs=sums.epochs)
    found = _summary(config.interface, sums, last)
    return say(as_json(found) if json else report(f"{config.interface}: marking has ended", _rows(found)))


def _summary(interface: str, sums: _Sums, last: MarkSample | None) -> dict[str, Any]:
    seconds = sums.seconds or 1.0
    counted = ("packets", "marked", "dropped", "spared")
    return {
        "interface": interface,
        "epochs": sums.epochs,
        "late": 0 if last is None else last.late,
        "seconds": sums.seconds,
        "mean_queue_bytes": sums.queue / seconds,
        "mean_probability": sums.probability / seconds,
        "arrival_bit_per_s": BITS_PER_BYTE * sums.bytes / seconds,
        **{name: 0 if last is None else getattr(last.counts, name) for name in counted},
    }


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("epochs", "{epochs}, {late} of them late, {seconds:.3g} s".format_map(found)),
        ("queue", "{mean_queue_bytes:.4g} bytes in the mean".format_map(found)),
        ("probability", "{mean_probability:.4g} in the mean".format_map(found)),
        ("arrivals", format_quantity(found["arrival_bit_per_s"], "bit/s")),
        ("packets", "{packets}, marked {marked}, dropped {dropped}, spared {spared}".format_map(found)),
    ]
