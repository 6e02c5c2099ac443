"""`netctrl linux mark`: ARC on an interface, until a signal or for a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

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


class _Marked(NamedTuple):
    """Summary of a run."""

    interface: str
    epochs: int
    late: int
    """Number of epochs that ended more than a tenth of their length late."""
    seconds: float
    mean_queue_bytes: float
    mean_probability: float
    arrival_bit_per_s: float
    packets: int
    marked: int
    dropped: int
    spared: int


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
    return say(as_json(found._asdict()) if json else report(f"{config.interface}: marking has ended", _rows(found)))


def _summary(interface: str, sums: _Sums, last: MarkSample | None) -> _Marked:
    counts, seconds = None if last is None else last.counts, sums.seconds or 1.0
    return _Marked(
        interface=interface,
        epochs=sums.epochs,
        late=0 if last is None else last.late,
        seconds=sums.seconds,
        mean_queue_bytes=sums.queue / seconds,
        mean_probability=sums.probability / seconds,
        arrival_bit_per_s=BITS_PER_BYTE * sums.bytes / seconds,
        packets=0 if counts is None else counts.packets,
        marked=0 if counts is None else counts.marked,
        dropped=0 if counts is None else counts.dropped,
        spared=0 if counts is None else counts.spared,
    )


def _rows(found: _Marked) -> list[tuple[str, str]]:
    return [
        ("epochs", f"{found.epochs}, {found.late} of them late, {found.seconds:.3g} s"),
        ("queue", f"{found.mean_queue_bytes:.4g} bytes in the mean"),
        ("probability", f"{found.mean_probability:.4g} in the mean"),
        ("arrivals", format_quantity(found.arrival_bit_per_s, "bit/s")),
        ("packets", f"{found.packets}, marked {found.marked}, dropped {found.dropped}, spared {found.spared}"),
    ]
